"""One node, one file: plan, approve, act, observe, verify."""
