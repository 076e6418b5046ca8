"""Record what models and tools said, and let a run hear the same again without any of them.

A tape is a file of JSON lines, redacted before it is written. A model's reply is kept with a hash of what it was
asked: a replay whose requests differ has left the recording, and says so instead of going on with wrong answers.
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

from opsleuth.state.base import Frozen
from opsleuth.state.calls import Call
from opsleuth.state.canonical import from_json
from opsleuth.state.configfile import problems
from opsleuth.state.errors import ConfigError, OpsleuthError
from opsleuth.state.outcome import ExitCode
from opsleuth.state.results import CallResult, ResultStatus
from opsleuth.state.words import counted

VERSION = 1
# What differs between two runs that are the same: the time that is left, and the tags of redacted secrets.
_PASSING = re.compile(r"Left: [^\\\"]*|#[0-9a-f]{4}\]")


class _Reply(Frozen):
    """What a model said to what it was asked, as a hash."""

    kind: Literal["model"]
    asked: str
    status: int
    headers: dict[str, str]
    body: str


class _Noted(Frozen):
    """What came of a call."""

    kind: Literal["tool"]
    call: str
    result: CallResult


_ENTRY: TypeAdapter[_Reply | _Noted] = TypeAdapter(Annotated[_Reply | _Noted, Field(discriminator="kind")])

Redact = Callable[[Any], tuple[Any, int]]


class Diverged(OpsleuthError):
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
        """A new tape, or one that is gone on with. Raises ConfigError where the file cannot be written."""
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
        """A tape that was recorded. Raises ConfigError for a file that is none."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            entries = [from_json(line) for line in lines]
        except (OSError, ValueError) as error:
            raise ConfigError(f"the recording {path} cannot be read: {error}") from None
        if not entries or entries[0] != {"kind": "tape", "version": VERSION}:
            raise ConfigError(f"{path} is no recording of version {VERSION}: make one with --record FILE")
        for line, entry in enumerate(entries[1:], 2):
            _check(entry, f"the recording {path}, line {line}")
        return cls(path, lambda value: (value, 0), entries[1:])

    def heard(self, asked: bytes, status: int, headers: dict[str, str], body: str) -> None:
        """Record one reply of a model."""
        self._write(
            {"kind": "model", "asked": _hash(asked), "status": status, "headers": headers, "body": body}
        )

    def answer(self, asked: bytes) -> tuple[int, dict[str, str], str]:
        """The recorded reply to this request. Raises Diverged where it is not the one that was recorded."""
        self._asked += 1
        if not self._replies:
            raise Diverged(
                f"{self.path} holds {counted(self._asked - 1, 'reply', 'replies')}, and the replay asks for one more"
            )
        entry = self._replies.popleft()
        if entry["asked"] != _hash(asked):
            raise Diverged(
                f"the replay has left {self.path} at request {self._asked}: it asks something else than what was "
                "recorded. Were a prompt, a tool, the case or an option changed since? Then record it anew"
            )
        return entry["status"], entry["headers"], entry["body"]

    def note(self, call: Call, part: str, result: CallResult) -> None:
        """Record what came of a call."""
        self._write({"kind": "tool", "call": _key(call, part), "result": asdict(result)})

    def result(self, call: Call, part: str) -> CallResult:
        """The recorded result of this call. Raises Diverged where there is none."""
        waiting = self._results.get(_key(call, part))
        if not waiting:
            raise Diverged(f"{self.path} holds no result of {call.tool} ({_key(call, part)})")
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


def _check(entry: object, where: str) -> None:
    """Raises ConfigError for what no recording holds."""
    try:
        _ENTRY.validate_python(entry)
    except ValidationError as error:
        raise ConfigError(f"{where} was changed: {problems(error)}. Record it anew") from None


def _key(call: Call, part: str) -> str:
    """What a call is called in any run: its turn and place, its part, and the digest of what it asks."""
    return f"{call.id.rpartition('/')[2]} {part} {call.digest}"


def _hash(asked: bytes) -> str:
    return hashlib.sha256(_PASSING.sub("", asked.decode("utf-8", "replace")).encode()).hexdigest()[:16]
