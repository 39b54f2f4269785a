"""The commands of `python -m pytest_jrh`."""
