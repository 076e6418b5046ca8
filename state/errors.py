"""Errors that end a command with a sentence and an exit code, in every room.

OpsleuthError
├── UsageError    the request cannot be meant like that (2)
└── ConfigError   configuration, trust or credentials (8)
"""

from opsleuth.state.outcome import ExitCode


class OpsleuthError(Exception):
    """`exit_code` is what a command ends with; the text says what happened and what to do."""

    exit_code = ExitCode.INTERNAL


class UsageError(OpsleuthError):
    """The request cannot be meant like that; the text says what is accepted."""

    exit_code = ExitCode.USAGE


class ConfigError(OpsleuthError):
    """Something about configuration, trust or credentials is missing or wrong."""

    exit_code = ExitCode.CONFIG
