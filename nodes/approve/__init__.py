"""The approve node: look at each gated call, then wait for people's answers."""
