"""The parts of the control plane: its state, its ledger, its switches, its signals, its HTTP face."""
