"""Conversations in JSON and JSON lines, with OpenAI or Anthropic messages (rule R2)."""
