"""The report as one HTML file: no script, no network, nothing beside it."""
