"""The config of a suite: its schema, its files, and what it comes to."""
