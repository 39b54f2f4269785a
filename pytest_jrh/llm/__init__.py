"""Calls of models: prompts, what is sent, what came back, and what it costs."""
