"""The observe node: turn results into observations with evidence."""
