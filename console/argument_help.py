"""Lines of help about arguments that many commands take."""

RUN_HELP = "RUN is a run's id, the beginning of it or of its last part, or - for the newest."
CHECKPOINT_HELP = "C is a checkpoint: c4, head, head~2, before:act, or a whole id; without it the newest."
