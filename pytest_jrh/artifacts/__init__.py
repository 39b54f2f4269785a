"""WHAT is kept of cases and results: records, spools, tables, and the checks of what is read
again.
"""
