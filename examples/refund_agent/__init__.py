"""A customer-support agent of a small kitchen shop, as an Inspect task."""
