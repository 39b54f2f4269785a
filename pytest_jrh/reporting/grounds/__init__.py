"""What the labels of a session rest on, in sentences and in JSON values (rules N2, N4 to N6)."""
