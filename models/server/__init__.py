"""A model server on loopback that speaks chat completions as it is told to: for trials and tests, with every fault."""
