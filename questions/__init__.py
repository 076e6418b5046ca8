"""What a question says: its incident window and the services it means. Pure functions."""
