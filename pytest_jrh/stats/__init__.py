"""Figures, intervals, tests and the decision of the gate: pure functions."""
