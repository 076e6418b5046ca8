"""Who decides: the planner and reviewer ports, and their adapters."""
