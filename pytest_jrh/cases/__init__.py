"""How a case is made: the pipeline, and the probes."""
