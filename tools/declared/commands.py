r"""Commands that the operator declared: argv templates, filled in and run without any shell.

A declaration is a table of the operator's own file:

    [command.restart-worker]
    argv = ["systemctl", "restart", "{unit}"]
    purpose = "Restart one worker unit."
    parameters = { unit = "worker-[0-9]{1,3}\\.service" }    # what it takes: see parameters.py
    target = "{unit}"
    check = ["systemctl", "is-active", "{unit}"]             # exit 0: it is as it should be
    probe = ["journalctl", "…", "{key}"]                     # exit 0: it happened, 1: it did not
    environment = ["PATH"]                                   # names of variables that it may see
    end_leftovers = true                                     # what it leaves running is ended; default: it goes on
    refused = [2]                                            # exit codes that say: nothing was done
    seconds = 30

    [command.queue-depth]
    argv = ["queuectl", "depth", "--json"]
    purpose = "How many jobs wait in each queue."
    risk = "read"                                            # it changes nothing; without this word it is high
    none = [3]                                               # exit codes that say: looked, and nothing is there
    output = "json"                                          # its output is one JSON document
    output_bytes = 8000                                      # of a longer output head and tail are kept

What the model writes is a value, put in whole, not a command.
"""

import os
from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from opsleuth.state.base import Name
from opsleuth.state.calls import ResultStatus, Risk
from opsleuth.state.json_types import JSON
from opsleuth.state.state_paths import parse_typed_value
from opsleuth.tools.call_binding import describe_program
from opsleuth.tools.declared.declaration import ToolDeclaration
from opsleuth.tools.declared.parameters import CommandArguments, fill_placeholders, find_placeholders
from opsleuth.tools.spec import (
    Arguments,
    OutcomeUnknownError,
    Run,
    ToolContext,
    ToolResult,
    ToolSpec,
    UnavailableError,
)
from opsleuth.tools.subprocesses import CommandNotStartedError, CommandOutput, run_command

Argv = Annotated[tuple[Annotated[str, StringConstraints(max_length=5_000)], ...], Field(max_length=200)]
ExitCodes = tuple[Annotated[int, Field(ge=1, le=255)], ...]


class DeclaredCommand(ToolDeclaration):
    """One declared command."""

    argv: Argv
    check: Argv = ()
    probe: Argv = ()
    environment: tuple[Name, ...] = ("PATH",)
    refused: ExitCodes = ()
    none: ExitCodes = ()
    output: Literal["text", "json"] = "text"
    end_leftovers: bool = False

    @model_validator(mode="after")
    def _usable(self) -> Self:
        self.check_names([*self.argv, *self.check, *self.probe, self.target or ""])
        if not self.argv or find_placeholders(self.argv[:1]):
            raise ValueError("argv begins with the program itself, not with a parameter")
        if self.risk is Risk.READ and (self.check or self.probe or self.refused):
            raise ValueError("a command that only reads has no check, no probe and refuses nothing")
        if self.risk is not Risk.READ and self.none:
            raise ValueError('only a command that reads (risk = "read") finds nothing')
        return self

    def filled(self, parts: Sequence[str], arguments: Arguments, key: str | None) -> list[str]:
        """The template with the values in their holes, each part one argument whatever the value holds."""
        return [fill_placeholders(part, self.values(arguments, key)) for part in parts]


def build_command_tool(command: DeclaredCommand) -> ToolSpec:
    """The command as a tool of its own, `command_run_<name>`, with one typed argument for each parameter."""

    async def change(arguments: Arguments, context: ToolContext) -> ToolResult:
        output = await _run_declared_command(command, command.argv, arguments, context)
        if output.code in command.refused:
            raise UnavailableError(_failure_text(command, output, "refused"))
        if output.code != 0:
            raise OutcomeUnknownError(_failure_text(command, output, "ended"))
        return _command_result(command, output, ResultStatus.OK)

    async def read(arguments: Arguments, context: ToolContext) -> ToolResult:
        output = await _run_declared_command(command, command.argv, arguments, context)
        if output.code != 0 and output.code not in command.none:
            raise UnavailableError(_failure_text(command, output, "failed"))
        return _command_result(
            command, output, ResultStatus.OK if output.code == 0 else ResultStatus.NONE_MATCHED
        )

    return command.spec(
        "command_run",
        CommandArguments,
        read if command.risk is Risk.READ else change,
        postcondition=_build_probe(command, command.check, absent=None) if command.check else None,
        probe=_build_probe(command, command.probe, absent=1) if command.probe else None,
        runs_commands=True,
        binding=lambda arguments: _describe_command(command, arguments),
    )


def _describe_command(command: DeclaredCommand, arguments: Arguments) -> dict[str, JSON]:
    """The declaration with its values, and the program behind it, for whoever approves the call."""
    runs = command.filled(command.argv, arguments, "{key}")
    looks = {
        name: list(parts) for name, parts in (("check", command.check), ("probe", command.probe)) if parts
    }
    return {"runs": runs, **looks, **describe_program(runs, command.environment)}


def _build_probe(command: DeclaredCommand, parts: Sequence[str], absent: int | None) -> Run:
    """Exit 0 means yes; `absent` (None: any other code) means no; everything else is unknown."""

    async def run(arguments: Arguments, context: ToolContext) -> ToolResult:
        output = await _run_declared_command(command, parts, arguments, context)
        if output.code == 0:
            return _command_result(command, output, ResultStatus.OK)
        no = output.code is not None and absent in (None, output.code)
        return _command_result(
            command, output, ResultStatus.NONE_MATCHED if no else ResultStatus.NOT_RECORDED
        )

    return run


async def _run_declared_command(
    command: DeclaredCommand, parts: Sequence[str], arguments: Arguments, context: ToolContext
) -> CommandOutput:
    allowed = {name: os.environ[name] for name in command.environment if name in os.environ}
    argv = command.filled(parts, arguments, context.idempotency_key)
    try:
        return await run_command(
            argv,
            seconds=command.seconds,
            environment=allowed,
            keep=command.output_bytes,
            end_leftovers=command.end_leftovers,
        )
    except CommandNotStartedError as error:
        raise UnavailableError(f"{error}; nothing was done") from None


def _failure_text(command: DeclaredCommand, output: CommandOutput, what: str) -> str:
    why = output.ended or f"exit code {output.code}"
    return f"{command.name} {what} ({why}): {output.text[-500:]}"


def _command_result(command: DeclaredCommand, output: CommandOutput, status: ResultStatus) -> ToolResult:
    last = output.text.strip().splitlines()[-1:] or ["no output"]
    return ToolResult(
        record={"code": output.code, "output": _parse_command_output(command, output), "bytes": output.size},
        headline=f"{command.name}: exit code {output.code}, {last[0]}"[:300],
        status=status,
        source=command.name,
    )


def _parse_command_output(command: DeclaredCommand, output: CommandOutput) -> JSON:
    """The output as the JSON that it was declared to be, else as the text that it is."""
    if command.output == "text":
        return output.text
    return parse_typed_value(output.text)
