"""The page on which people decide about cases, or label them blind."""
