"""Reads YAML, JSON and JSON lines written by people, with file and line of every problem."""
