"""WHERE transcripts come from: Inspect logs, read and written."""
