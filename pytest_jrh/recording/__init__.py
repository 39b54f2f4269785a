"""Recording and replay: cassettes, and the tapes that answer a case's calls."""
