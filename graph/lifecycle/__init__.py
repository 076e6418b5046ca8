"""The life of a run: how it is queued, started, driven, resumed, and how an attempt ends."""
