"""Tables of the service: intake, jobs, tokens, notices, rate limits, alerts."""
