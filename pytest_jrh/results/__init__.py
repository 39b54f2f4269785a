"""WHAT came out: artefacts, figures, and the lines that report them. Pure: no pytest, no model."""
