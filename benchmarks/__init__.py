"""Measurements of pytest-jrh beside what a user would run instead: `python -m benchmarks`."""
