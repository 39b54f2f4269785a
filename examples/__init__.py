"""Worked examples: an agent with real tools, and the scripted model behind its recorded suite."""
