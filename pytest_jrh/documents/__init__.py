"""READING files that people write: YAML, JSON and JSON lines, with the place of everything that is
wrong.
"""
