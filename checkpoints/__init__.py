"""What outlives the process: checkpoints, runs, trace, evidence, approvals, effects. One redaction funnel before all."""
