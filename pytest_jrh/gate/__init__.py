"""WHETHER a suite passes: its baseline and the decision of its gate."""
