"""A scripted model server on loopback that speaks chat completions, with every fault, for trials and tests."""
