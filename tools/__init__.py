"""Tools: their specs, the registry, policy, the executor, one file per capability."""
