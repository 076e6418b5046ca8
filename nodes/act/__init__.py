"""The act node: run the calls of a turn, reads together, effects one by one through the ledger."""
