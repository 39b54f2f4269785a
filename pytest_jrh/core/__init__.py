"""What everything else rests on: the data model, errors, transcripts, text and files."""
