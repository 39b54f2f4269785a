"""HOW a case is judged."""
