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

import json
import os
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NoReturn, Self

from pydantic import Field, StringConstraints, model_validator

from opsleuth.state.base import Name
from opsleuth.state.calls import ResultStatus, Risk
from opsleuth.tools.declared.declaration import Declaration
from opsleuth.tools.declared.parameters import NoOption, filled, holes
from opsleuth.tools.process import NotStarted, Output, run_command
from opsleuth.tools.spec import Arguments, OutcomeUnknown, Run, ToolContext, ToolResult, ToolSpec, Unavailable

Argv = Annotated[tuple[Annotated[str, StringConstraints(max_length=5_000)], ...], Field(max_length=200)]
ExitCodes = tuple[Annotated[int, Field(ge=1, le=255)], ...]


class Command(Declaration):
    """One declared command."""

    argv: Argv
    check: Argv = ()
    probe: Argv = ()
    environment: tuple[Name, ...] = ("PATH",)
    refused: ExitCodes = ()
    none: ExitCodes = ()
    output: Literal["text", "json"] = "text"

    @model_validator(mode="after")
    def _usable(self) -> Self:
        self.check_names([*self.argv, *self.check, *self.probe, self.target or ""])
        if not self.argv or holes(self.argv[:1]):
            raise ValueError("argv begins with the program itself, not with a parameter")
        if self.risk is Risk.READ and (self.check or self.probe or self.refused):
            raise ValueError("a command that only reads has no check, no probe and refuses nothing")
        if self.risk is not Risk.READ and self.none:
            raise ValueError('only a command that reads (risk = "read") finds nothing')
        return self

    def filled(self, parts: Sequence[str], arguments: Arguments, key: str | None) -> list[str]:
        """The template with the values in their holes, each part one argument whatever the value holds."""
        return [filled(part, self.values(arguments, key)) for part in parts]


def command_tool(command: Command) -> ToolSpec:
    """The command as a tool of its own, `command_run_<name>`, with one typed argument for each parameter."""

    async def change(arguments: Arguments, context: ToolContext) -> ToolResult:
        output = await _executed(command, command.argv, arguments, context)
        if output.code in command.refused:
            raise Unavailable(_said(command, output, "refused"))
        if output.code != 0:
            raise OutcomeUnknown(_said(command, output, "ended"))
        return _result(command, output, ResultStatus.OK)

    async def read(arguments: Arguments, context: ToolContext) -> ToolResult:
        output = await _executed(command, command.argv, arguments, context)
        if output.code != 0 and output.code not in command.none:
            raise Unavailable(_said(command, output, "failed"))
        return _result(command, output, ResultStatus.OK if output.code == 0 else ResultStatus.NONE_MATCHED)

    return command.spec(
        "command_run",
        NoOption,
        read if command.risk is Risk.READ else change,
        postcondition=_asked(command, command.check, absent=None) if command.check else None,
        probe=_asked(command, command.probe, absent=1) if command.probe else None,
        runs_commands=True,
    )


def _asked(command: Command, parts: Sequence[str], absent: int | None) -> Run:
    """Exit 0 is yes; `absent` (None: any other code) is no; everything else cannot be told."""

    async def run(arguments: Arguments, context: ToolContext) -> ToolResult:
        output = await _executed(command, parts, arguments, context)
        if output.code == 0:
            return _result(command, output, ResultStatus.OK)
        no = output.code is not None and absent in (None, output.code)
        return _result(command, output, ResultStatus.NONE_MATCHED if no else ResultStatus.NOT_RECORDED)

    return run


async def _executed(
    command: Command, parts: Sequence[str], arguments: Arguments, context: ToolContext
) -> Output:
    allowed = {name: os.environ[name] for name in command.environment if name in os.environ}
    argv = command.filled(parts, arguments, context.idempotency_key)
    try:
        return await run_command(
            argv, seconds=command.seconds, environment=allowed, keep=command.output_bytes
        )
    except NotStarted as error:
        raise Unavailable(f"{error}; nothing was done") from None


def _said(command: Command, output: Output, what: str) -> str:
    why = output.ended or f"exit code {output.code}"
    return f"{command.name} {what} ({why}): {output.text[-500:]}"


def _result(command: Command, output: Output, status: ResultStatus) -> ToolResult:
    last = output.text.strip().splitlines()[-1:] or ["no output"]
    return ToolResult(
        record={"code": output.code, "output": _document(command, output), "bytes": output.size},
        headline=f"{command.name}: exit code {output.code}, {last[0]}"[:300],
        status=status,
        source=command.name,
    )


def _document(command: Command, output: Output) -> Any:  # noqa: ANN401 - any JSON value
    """The output as the JSON that it was declared to be, else as the text that it is."""
    if command.output == "text":
        return output.text
    try:
        return json.loads(output.text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return output.text


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")
