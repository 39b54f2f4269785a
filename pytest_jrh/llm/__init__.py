"""TALKING to models: prompts, the client, and the cassettes."""
