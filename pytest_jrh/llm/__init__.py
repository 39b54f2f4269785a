"""TALKING to models: prompts, the client, and what its answers mean."""
