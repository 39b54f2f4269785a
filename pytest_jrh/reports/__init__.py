"""What a session says: terminal, Markdown, HTML, JSON, and files of results."""
