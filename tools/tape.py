"""Record the replies of models and tools, and replay them to a run without either.

A tape is a file of JSON lines, redacted before it is written. A model's reply is kept with a hash of what it was
asked: a replay whose requests differ has diverged from the recording, and says so instead of going on with wrong answers.
"""

import hashlib
import json
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, ValidationError

from opsleuth.configuration.config_file import format_validation_errors
from opsleuth.state.base import FrozenModel
from opsleuth.state.calls import Call
from opsleuth.state.canonical_json import parse_json_text
from opsleuth.state.errors import ConfigError, OpsleuthError
from opsleuth.state.plurals import format_count
from opsleuth.state.results import CallResult, ResultStatus
from opsleuth.state.run_status import ExitCode

VERSION = 1
# What differs between two runs that are the same: the time that is left, and the tags of redacted secrets.
_PASSING = re.compile(r"Left: [^\\\"]*|#[0-9a-f]{4}\]")


class _RecordedReply(FrozenModel):
    """What a model said to what it was asked, as a hash."""

    kind: Literal["model"]
    asked: str
    status: int
    headers: dict[str, str]
    body: str


class _RecordedResult(FrozenModel):
    """The result of a call."""

    kind: Literal["tool"]
    call: str
    result: CallResult


_ENTRY: TypeAdapter[_RecordedReply | _RecordedResult] = TypeAdapter(
    Annotated[_RecordedReply | _RecordedResult, Field(discriminator="kind")]
)

Redact = Callable[[Any], tuple[Any, int]]


class ReplayDivergedError(OpsleuthError):
    """The replay asks for something that was not recorded; the text says at which point."""

    exit_code = ExitCode.CONFIG


class Tape:
    """A recording being made, or one that is played."""

    def __init__(self, path: Path, redact: Redact, entries: list[dict[str, Any]] | None) -> None:
        self.path, self._redact, self.replays = path, redact, entries is not None
        self._replies = deque(e for e in entries or () if e["kind"] == "model")
        self._results: dict[str, deque[dict[str, Any]]] = {}
        for entry in entries or ():
            if entry["kind"] == "tool":
                self._results.setdefault(entry["call"], deque()).append(entry)
        self._asked = 0

    @classmethod
    def recording(cls, path: Path, redact: Redact) -> Self:
        """A new tape, or one that continues from an existing file. Raises ConfigError where the file cannot be written."""
        tape = cls(path, redact, None)
        try:
            fresh = not path.exists() or path.stat().st_size == 0
        except OSError as error:
            raise ConfigError(f"the recording {path} cannot be written: {error.strerror}") from None
        if fresh:
            tape._write({"kind": "tape", "version": VERSION})
        return tape

    @classmethod
    def playing(cls, path: Path) -> Self:
        """A tape that was recorded. Raises ConfigError for any other file."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            entries = [parse_json_text(line) for line in lines]
        except (OSError, ValueError) as error:
            raise ConfigError(f"the recording {path} cannot be read: {error}") from None
        if not entries or entries[0] != {"kind": "tape", "version": VERSION}:
            raise ConfigError(f"{path} is not a recording of version {VERSION}: make one with --record FILE")
        for line, entry in enumerate(entries[1:], 2):
            _check_entry(entry, f"the recording {path}, line {line}")
        return cls(path, lambda value: (value, 0), entries[1:])

    def heard(self, asked: bytes, status: int, headers: dict[str, str], body: str) -> None:
        """Record one reply of a model."""
        self._write(
            {
                "kind": "model",
                "asked": _request_sha256(asked),
                "status": status,
                "headers": headers,
                "body": body,
            }
        )

    def answer(self, asked: bytes) -> tuple[int, dict[str, str], str]:
        """The recorded reply to this request. Raises ReplayDivergedError where it is not the one that was recorded."""
        self._asked += 1
        if not self._replies:
            raise ReplayDivergedError(
                f"{self.path} holds {format_count(self._asked - 1, 'reply', 'replies')}, and the replay asks for one more"
            )
        entry = self._replies.popleft()
        if entry["asked"] != _request_sha256(asked):
            raise ReplayDivergedError(
                f"the replay diverged from {self.path} at request {self._asked}: the request is not the one that was "
                "recorded. If a prompt, a tool, the case or an option has changed since, record it again"
            )
        return entry["status"], entry["headers"], entry["body"]

    def note(self, call: Call, part: str, result: CallResult) -> None:
        """Record the result of a call."""
        self._write({"kind": "tool", "call": _recorded_call_key(call, part), "result": asdict(result)})

    def result(self, call: Call, part: str) -> CallResult:
        """The recorded result of this call. Raises ReplayDivergedError where there is none."""
        waiting = self._results.get(_recorded_call_key(call, part))
        if not waiting:
            raise ReplayDivergedError(
                f"{self.path} holds no result of {call.tool} ({_recorded_call_key(call, part)})"
            )
        entry = waiting.popleft()["result"] | {"call_id": call.id}
        spark, status = tuple(entry.pop("spark")), ResultStatus(entry.pop("status"))
        return CallResult(**entry, spark=spark, status=status)

    def _write(self, entry: Mapping[str, Any]) -> None:
        line = json.dumps(self._redact(entry)[0], ensure_ascii=False, separators=(",", ":"))
        try:
            with self.path.open("a", encoding="utf-8") as out:
                out.write(line + "\n")
        except OSError as error:
            raise ConfigError(f"the recording {self.path} cannot be written: {error.strerror}") from None


def _check_entry(entry: object, where: str) -> None:
    """Raises ConfigError for what no recording holds."""
    try:
        _ENTRY.validate_python(entry)
    except ValidationError as error:
        raise ConfigError(
            f"{where} was changed: {format_validation_errors(error)}. Record it again"
        ) from None


def _recorded_call_key(call: Call, part: str) -> str:
    """What a call is called in any run: its turn and place, its part, and the digest of what it asks."""
    return f"{call.id.rpartition('/')[2]} {part} {call.digest}"


def _request_sha256(asked: bytes) -> str:
    return hashlib.sha256(_PASSING.sub("", asked.decode("utf-8", "replace")).encode()).hexdigest()[:16]
