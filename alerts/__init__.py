"""Alerts of other systems: what their documents say, what their labels name, and which of them are one incident."""
