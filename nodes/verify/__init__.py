"""The verify node: check effects against the outside world, and the draft against the evidence."""
