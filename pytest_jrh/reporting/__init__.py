"""WHAT people and programs are shown: one module for each report, told from one value."""
