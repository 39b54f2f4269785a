"""A suite whose cases differ from the demo's runs in what the agent did."""
