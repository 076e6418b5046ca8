"""The interactive stepper: a run node by node, its past, its branches."""
