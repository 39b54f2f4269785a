"""KEEPING answers of models: cassettes, and the tapes that a case's calls go through."""
