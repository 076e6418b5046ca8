"""What can be done: tool specs, the registry, policy, the executor, one file per capability."""
