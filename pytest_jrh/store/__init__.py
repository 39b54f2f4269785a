"""What a suite keeps on disk."""
