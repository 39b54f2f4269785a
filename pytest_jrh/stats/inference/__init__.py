"""Formulas of statistics: numbers in, numbers out, nothing of judges and cases."""
