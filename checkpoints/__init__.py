"""Everything that outlives the process: checkpoints, runs, trace, evidence, approvals, effects. All of it is redacted first."""
