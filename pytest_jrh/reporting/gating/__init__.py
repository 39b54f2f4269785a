"""What the gate has decided, in sentences: the thresholds, and what changed since the baseline."""
