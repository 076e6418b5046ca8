"""Checks of sentences: numbers, names and times of a text, compared with the evidence that it cites. Pure functions."""
