"""Worlds with a known cause, for the demonstration and for measuring."""
