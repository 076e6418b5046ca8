r"""Commands that the operator declared: argv templates, filled in and run without any shell.

A declaration is a table of the operator's own file:

    [command.restart-worker]
    argv = ["systemctl", "restart", "{unit}"]
    purpose = "Restart one worker unit."
    parameters = { unit = "worker-[0-9]{1,3}\\.service" }    # each a regular expression for the whole value
    target = "{unit}"
    check = ["systemctl", "is-active", "{unit}"]             # exit 0: it is as it should be
    probe = ["journalctl", "…", "{key}"]                     # exit 0: it happened, 1: it did not
    environment = ["PATH"]                                   # names of variables that it may see
    refused = [2]                                            # exit codes that say: nothing was done
    seconds = 30

A value is put in whole, never split, and may not begin with a dash. What the model writes is a value, not a command.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field, create_model

from opsleuth.state.calls import ResultStatus, Risk
from opsleuth.state.errors import ConfigError
from opsleuth.tools.process import Output, run_command
from opsleuth.tools.spec import Arguments, OutcomeUnknown, Run, ToolContext, ToolResult, ToolSpec, Unavailable

_HOLE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One declared command. `risk` is high unless the operator says otherwise."""

    name: str
    argv: Sequence[str]
    purpose: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    target: str = ""
    risk: Risk = Risk.HIGH
    check: Sequence[str] = ()
    probe: Sequence[str] = ()
    environment: Sequence[str] = ("PATH",)
    refused: Sequence[int] = ()
    takes_key: bool = False
    seconds: float = 30.0

    def __post_init__(self) -> None:
        """Raises ValueError for a hole that no parameter fills, and for a program that is not fixed."""
        known = {*self.parameters, "key"}
        holes = {
            h for part in (*self.argv, *self.check, *self.probe, self.target) for h in _HOLE.findall(part)
        }
        if unknown := sorted(holes - known):
            raise ValueError(f"command {self.name}: no parameter {', '.join(unknown)}")
        if not self.argv or _HOLE.search(self.argv[0]):
            raise ValueError(
                f"command {self.name}: argv begins with the program itself, not with a parameter"
            )

    def filled(self, parts: Sequence[str], arguments: Arguments, key: str | None) -> list[str]:
        """The template with the values in their holes, each part one argument whatever the value holds."""
        values = arguments.model_dump() | {"key": key or ""}
        return [_HOLE.sub(lambda hole: str(values[hole[1]]), part) for part in parts]


def commands(declared: Mapping[str, Mapping[str, Any]]) -> list[ToolSpec]:
    """A tool for each declaration. Raises ConfigError for one that cannot be used: nothing of it is guessed."""
    return [command_tool(_read(name, row)) for name, row in declared.items()]


def _read(name: str, row: Mapping[str, Any]) -> Command:
    known = set(Command.__dataclass_fields__) - {"name"}
    if wrong := row.keys() - known:
        raise ConfigError(
            f"command {name}: unknown {', '.join(sorted(wrong))}; it has {', '.join(sorted(known))}"
        )
    try:
        return Command(**{**row, "name": name, "risk": Risk(row.get("risk", "high"))})
    except (TypeError, ValueError) as error:
        raise ConfigError(f"command {name} cannot be used: {error}") from None


def command_tool(command: Command) -> ToolSpec:
    """The command as a tool of its own, `command_run_<name>`, with one typed argument for each parameter."""

    async def run(arguments: Arguments, context: ToolContext) -> ToolResult:
        output = await _executed(command, command.argv, arguments, context)
        if output.ended or (output.code != 0 and output.code not in command.refused):
            why = output.ended or f"exit code {output.code}"
            raise OutcomeUnknown(f"{command.name}: {why}: {output.text[-500:]}")
        if output.code in command.refused:
            raise Unavailable(f"{command.name} refused (exit code {output.code}): {output.text[-500:]}")
        return _result(command, output, ResultStatus.OK)

    return ToolSpec(
        name=f"command_run_{re.sub(r'[^a-z0-9]+', '_', command.name.casefold())}",
        purpose=command.purpose,
        not_for="Anything else than what the operator declared.",
        arguments=_arguments(command),
        example={name: f"matches {pattern}" for name, pattern in command.parameters.items()},
        run=run,
        risk=command.risk,
        target=lambda arguments: command.filled([command.target or command.name], arguments, None)[0],
        timeout=command.seconds + 2.0,
        postcondition=_asked(command, command.check, absent=None) if command.check else None,
        probe=_asked(command, command.probe, absent=1) if command.probe else None,
        undo="as the operator knows",
        takes_key=command.takes_key,
        runs_commands=True,
        origin="declared by the operator",
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
        return await run_command(argv, seconds=command.seconds, environment=allowed)
    except OSError as error:
        raise Unavailable(f"{argv[0]} cannot be started, nothing was done: {error.strerror}") from None


def _result(command: Command, output: Output, status: ResultStatus) -> ToolResult:
    last = output.text.strip().splitlines()[-1:] or ["no output"]
    return ToolResult(
        record={"code": output.code, "output": output.text, "bytes": output.size},
        headline=f"{command.name}: exit code {output.code}, {last[0]}"[:300],
        status=status,
        source=command.name,
    )


def _arguments(command: Command) -> type[Arguments]:
    """A strict model with one text for each parameter: the pattern fits the whole of it, and it is no option."""
    fields: dict[str, Any] = {
        name: (Annotated[str, Field(pattern=rf"^(?:{pattern})$", max_length=5_000)], ...)
        for name, pattern in command.parameters.items()
    }
    model: type[Arguments] = create_model(f"Command_{command.name}", __base__=_NoOption, **fields)
    return model


class _NoOption(Arguments):
    """Values that a program could take for an option are refused."""

    def model_post_init(self, _: Any, /) -> None:  # noqa: ANN401 - as pydantic declares it
        for name, value in self:
            if isinstance(value, str) and (value.startswith("-") or "\0" in value):
                raise ValueError(f"{name} may not begin with a dash or hold a NUL byte")
