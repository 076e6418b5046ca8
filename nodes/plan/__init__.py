"""The plan node: ask the planner, check its decision, number and gate its calls."""
