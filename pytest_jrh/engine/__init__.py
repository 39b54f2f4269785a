"""Runs the cases of suites, without pytest."""
