"""Makes cases: summarizer, planner, editor, verifier, and the perturber that runs them."""
