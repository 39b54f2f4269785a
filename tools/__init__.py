"""Commands for those who work on pytest-jrh; no part of the package."""
