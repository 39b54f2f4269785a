"""pytest-jrh: tests for language models used as judges."""
