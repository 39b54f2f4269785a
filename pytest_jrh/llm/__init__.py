"""Model calls: prompts, the client, budgets, and how answers are read."""
