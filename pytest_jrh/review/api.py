"""Empty: the next commit deletes it, which the warm mypy daemon takes one module at a time."""
