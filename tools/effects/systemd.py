"""Units of systemd as a platform: their state, and restarts, by `systemctl` (of this host, or of another over ssh).

systemd knows no keys and no conditions: a restart is started only if the unit still has the invocation that was looked at,
and whether a lost one happened is judged by the time at which the unit was last started.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from opsleuth.tools.effects.platform import Kind, PlatformOperation, ServiceView
from opsleuth.tools.spec import (
    InvalidArgumentsError,
    NotPermittedError,
    OutcomeUnknownError,
    TransientError,
    UnavailableError,
)
from opsleuth.tools.subprocesses import CommandNotStartedError, CommandOutput, run_command

SHOW_SECONDS, RESTART_SECONDS = 10.0, 90.0
_PROPERTIES = (
    "LoadState", "ActiveState", "SubState", "InvocationID", "InactiveExitTimestamp", "InactiveExitTimestampMonotonic", "Job",
)  # fmt: skip
_REFUSED = ("access denied", "authentication required", "permission denied", "not permitted", "is masked")
_NOT_REACHED = (
    "failed to connect to bus",
    "not been booted with systemd",
    "could not resolve hostname",
    "connection refused",
)


@dataclass(frozen=True, slots=True)
class SystemdPlatform:
    """The units that the operator named, by service. `host` as in `systemctl --host`, None for this one."""

    name: str
    units: Mapping[str, str]
    environment: str = "production"
    host: str | None = None
    program: str = "systemctl"
    keys: bool = False
    kinds: frozenset[Kind] = field(default=frozenset({"restart"}))

    async def service(self, name: str) -> ServiceView | None:
        unit = self.units.get(name)
        if unit is None:
            return None
        shown = await self._show(unit)
        if shown.get("LoadState") != "loaded":
            return None
        state = f"{shown['ActiveState']} ({shown['SubState']})"
        return ServiceView(
            name=name,
            version=unit,
            versions=(unit,),
            replicas=1,
            restarts=_int_property(shown, "InactiveExitTimestampMonotonic"),
            health="healthy" if shown["ActiveState"] == "active" else state,
            revision=shown.get("InvocationID", ""),
        )

    def describe_place(self) -> str:
        """The host whose units are changed."""
        return f"{self.program} on {self.host or 'this machine'}"

    async def dry_run(self, operation: PlatformOperation, revision: str) -> str:
        """Systemd has no dry run; what would be run is said instead."""
        del revision
        return f"would run: {' '.join(self._argv('restart', self._unit(operation)))}"

    async def submit(
        self, operation: PlatformOperation, key: str, revision: str | None = None
    ) -> Mapping[str, Any]:
        del key
        unit = self._unit(operation)
        if revision is not None and (now := (await self._show(unit)).get("InvocationID")) != revision:
            raise NotPermittedError(
                f"{unit} was restarted since it was looked at (invocation {now}): look again"
            )
        output = await self._run(self._argv("restart", unit), RESTART_SECONDS)
        if output.code == 0:
            return {"status": "restarted"}
        said = f"{self.name}: systemctl restart {unit}: {output.ended or output.code}: {output.text[-300:].strip()}"
        if not output.ended:
            _raise_if_refused(output, said)
        if output.code == 1 and revision and (await self._show(unit)).get("InvocationID") != revision:
            return {"status": "restarted, and it did not come up", "said": output.text[-500:]}
        raise OutcomeUnknownError(said)

    async def applied(
        self, operation: PlatformOperation, key: str, begun: datetime | None = None
    ) -> bool | None:
        """Whether the unit was started since; None while a job of it is under way, or without a time to compare with."""
        del key
        shown = await self._show(self._unit(operation))
        started = _parse_unix_timestamp(shown.get("InactiveExitTimestamp", ""))
        if begun is None or started is None or _int_property(shown, "Job"):
            return None
        return started >= begun.replace(microsecond=0)

    def _unit(self, operation: PlatformOperation) -> str:
        if operation.kind != "restart" or operation.target not in self.units:
            raise InvalidArgumentsError(f"{self.name} restarts {', '.join(self.units)}, nothing else")
        return self.units[operation.target]

    async def _show(self, unit: str) -> Mapping[str, str]:
        wanted = [f"--property={','.join(_PROPERTIES)}", "--timestamp=unix"]
        output = await self._run(self._argv("show", unit, *wanted), SHOW_SECONDS)
        if output.code != 0:
            said = f"{self.name}: systemctl show {unit}: {output.ended or output.text[-300:].strip()}"
            _raise_if_refused(output, said)
            raise TransientError(said)
        return dict(line.partition("=")[::2] for line in output.text.splitlines() if "=" in line)

    def _argv(self, verb: str, unit: str, *options: str) -> Sequence[str]:
        host = [f"--host={self.host}"] if self.host else []
        return [self.program, *host, "--no-ask-password", "--no-pager", *options, verb, "--", unit]

    async def _run(self, argv: Sequence[str], seconds: float) -> CommandOutput:
        try:
            return await run_command(argv, seconds=seconds)
        except CommandNotStartedError as error:
            raise UnavailableError(f"{self.name}: {error}") from None


def _raise_if_refused(output: CommandOutput, said: str) -> None:
    """Raises what the words of systemctl say for certain: nothing was done."""
    text = output.text.casefold()
    if any(words in text for words in _NOT_REACHED):
        raise UnavailableError(said)
    if output.code == 5 or "not found" in text or "not loaded" in text:
        raise InvalidArgumentsError(said)
    if output.code == 4 or any(words in text for words in _REFUSED):
        raise NotPermittedError(said)


def _int_property(shown: Mapping[str, str], name: str) -> int:
    text = shown.get(name, "")
    return int(text) if text.isdigit() else 0


def _parse_unix_timestamp(text: str) -> datetime | None:
    """`@1764442800` as a moment; None for a unit that was never started."""
    seconds = text.removeprefix("@")
    return datetime.fromtimestamp(int(seconds), UTC) if seconds.isdigit() and int(seconds) else None
