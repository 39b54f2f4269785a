"""Recordings of calls: cassettes, and what answers from them."""
