"""The typed state of one investigation and its small parts. Imports nothing else of opsleuth."""
