"""The recorded cluster as one model: its objects, how they are related, what changed, what deviates."""
