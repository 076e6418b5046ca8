"""The trace of a run: events, spans, and snapshots."""
