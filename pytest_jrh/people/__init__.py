"""What people say of cases and runs: labels and decisions, and the boards where they give them."""
