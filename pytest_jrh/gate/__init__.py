"""Decides whether a suite passes: its baseline and its gate."""
