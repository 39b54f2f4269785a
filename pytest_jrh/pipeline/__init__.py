"""HOW a case is made: summarizer, planner, editor, verifier, and the perturber that drives them."""
