"""WHAT the verdicts come to: figures with their intervals, pure functions of results."""
