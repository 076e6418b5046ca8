"""Stepping: breakpoints, edits, calls by hand, and forks."""
