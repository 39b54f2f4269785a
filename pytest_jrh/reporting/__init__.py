"""The reports: one module each, rendered from one value."""
