"""Run a set of cases, score it, compare two results."""
