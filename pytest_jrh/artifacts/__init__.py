"""Stored cases and results: records, spools, tables, and the validation of what is read back."""
