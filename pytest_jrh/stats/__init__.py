"""Figures of the verdicts with their intervals: pure functions of results."""
