"""A suite on conversations in OpenAI's messages, one a line."""
