"""Pairs of answers, and a judge that is asked in both orders."""
