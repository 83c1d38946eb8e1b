"""Tools: what a gate may run, how its arguments are checked, and what its name and digest stand for."""
