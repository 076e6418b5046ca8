"""A Loki in memory as far as a source of log lines asks it: streams, pages, limits, and the little LogQL for that."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from contract_server import Asked, Reply

NANO = 1_000_000_000
Labels = Mapping[str, str]
Test = Callable[[Labels, str], bool]
_TOKEN = re.compile(r'\s*(\|~|=~|[|(){}=]|or\b|and\b|[A-Za-z_]\w*|"(?:[^"\\]|\\.)*")')
_COUNT = re.compile(r"sum\(count_over_time\((.*) \[(\d+)ns\]\)\)", re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """One line; `time` in nanoseconds."""

    time: int
    labels: Labels
    text: str


class _Query:
    """A selector and its stages, read token by token; anything else is refused as Loki does."""

    def __init__(self, text: str) -> None:
        self._tokens = self._parted(text)
        self._at = 0
        self.tests: list[Test] = []
        while self._at < len(self._tokens):
            self.tests.append(self._stage())

    def _parted(self, text: str) -> Sequence[str]:
        tokens, at = [], 0
        while at < len(text):
            if (found := _TOKEN.match(text, at)) is None:
                raise ValueError(f"parse error at line 1, col {at + 1}: syntax error")
            tokens.append(found[1])
            at = found.end()
        return tokens

    def _next(self, *wanted: str) -> str:
        token = self._tokens[self._at]
        if wanted and token not in wanted:
            raise ValueError(f"parse error: unexpected {token}, expected {' '.join(wanted)}")
        self._at += 1
        return token

    def _stage(self) -> Test:
        kind = self._next("{", "|", "|~")
        if kind == "|~":
            pattern = re.compile(
                json.loads(self._next()), re.ASCII
            )  # folding beyond ASCII is not the same everywhere
            return lambda _, text: pattern.search(text) is not None
        test = self._either() if kind == "|" else self._match()
        if kind == "{":
            self._next("}")
        return test

    def _either(self) -> Test:
        tests = [self._both()]
        while self._peek() == "or":
            self._next()
            tests.append(self._both())
        return lambda labels, text: any(test(labels, text) for test in tests)

    def _both(self) -> Test:
        tests = [self._one()]
        while self._peek() == "and":
            self._next()
            tests.append(self._one())
        return lambda labels, text: all(test(labels, text) for test in tests)

    def _one(self) -> Test:
        if self._peek() != "(":
            return self._match()
        self._next("(")
        test = self._either()
        self._next(")")
        return test

    def _match(self) -> Test:
        name, sign, value = self._next(), self._next("=", "=~"), json.loads(self._next())
        if sign == "=":
            return lambda labels, _: labels.get(name, "") == value
        pattern = re.compile(value, re.ASCII)
        return lambda labels, _: pattern.fullmatch(labels.get(name, "")) is not None

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""


@dataclass
class LokiStore:
    """`most` entries and `longest` seconds at once are the server's limits."""

    entries: Sequence[Entry]
    most: int = 5_000
    longest: float | None = None
    known: Sequence[str] = ("app", "namespace")
    sent: int = field(default=0, init=False)

    def __call__(self, asked: Asked) -> Reply:
        if asked.path.endswith("/labels"):
            return Reply({"status": "success", "data": [*self.known]})
        try:
            answer = self._counted if asked.path.endswith("/query") else self._page
            return answer(asked.query)
        except ValueError as error:
            return Reply(str(error), 400)

    def _page(self, query: Mapping[str, str]) -> Reply:
        start, end, limit = int(query["start"]), int(query["end"]), int(query["limit"])
        if limit > self.most:
            raise ValueError(f"max entries limit per query exceeded, limit > max_entries_limit_per_query ({limit} > {self.most})")  # fmt: skip
        if self.longest and end - start > self.longest * NANO:
            raise ValueError(f"the query time range exceeds the limit (query length: 1h30m0s, limit: {self.longest / 60:.0f}m0s)")  # fmt: skip
        assert query["direction"] == "forward"
        found = sorted(self._found(query["query"], start, end), key=lambda e: e.time)[:limit]
        self.sent += len(found)
        streams: dict[str, list[list[str]]] = {}
        for entry in found:
            streams.setdefault(json.dumps(entry.labels, sort_keys=True), []).append([str(entry.time), entry.text])  # fmt: skip
        result = [{"stream": json.loads(labels), "values": values} for labels, values in streams.items()]
        return Reply({"status": "success", "data": {"resultType": "streams", "result": result, "stats": {}}})

    def _counted(self, query: Mapping[str, str]) -> Reply:
        """A range ends at the time of the query, and is without its first moment."""
        if (found := _COUNT.fullmatch(query["query"])) is None:
            raise ValueError("parse error: not a count")
        end = int(query["time"])
        number = len(self._found(found[1], end - int(found[2]) + 1, end + 1))
        result = [{"metric": {}, "value": [end / NANO, str(number)]}] if number else []
        return Reply({"status": "success", "data": {"resultType": "vector", "result": result}})

    def _found(self, query: str, start: int, end: int) -> Sequence[Entry]:
        tests = _Query(query).tests
        inside = (e for e in self.entries if start <= e.time < end)
        return [e for e in inside if all(test(e.labels, e.text) for test in tests)]
