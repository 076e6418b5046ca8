"""When a sentence may be said: numbers, names and times of a text, held against the evidence that it cites. Pure functions."""
