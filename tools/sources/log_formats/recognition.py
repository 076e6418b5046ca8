"""Which formats a file's lines have: its beginning, middle and end are read by every declaration and counted."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

from opsleuth.tools.sources.log_formats.compiled_formats import (
    BY_NAME,
    COMPILED,
    FORMAT_NAMES,
    CompiledFormat,
    compile_format,
)
from opsleuth.tools.sources.log_formats.declaration import LogFormat
from opsleuth.tools.sources.log_formats.json_formats import JSON_FORMATS
from opsleuth.tools.sources.log_formats.w3c import w3c_format
from opsleuth.tools.sources.logformat import LogLineReader

_NO_FORMAT = ("text", "timed text")
_VERBATIM = frozenset(
    (*_NO_FORMAT, "json", *(c.declared.name for c in COMPILED if c.declared.verbatim and not c.is_envelope))
)
# Below this share of lines with a time, a line that does not continue another is a record of its own.
_TIMED = 0.02
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class RecognizedFormats:
    """What the sampled lines of a file are, by the names of formats; `timed` of `lines` have a time.

    `firsts` are the characters with which they begin. `only` says that the settings named the format,
    `inside` names formats of lines in envelopes.
    """

    counts: Counter[str]
    lines: int
    timed: int
    own: tuple[CompiledFormat, ...] = ()
    firsts: frozenset[str] = field(default=frozenset(), repr=False)
    only: bool = False
    inside: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def inner(self) -> tuple[CompiledFormat, ...]:
        """The declared formats that were met inside envelopes, in the order in which they are tried."""
        return tuple(compiled for compiled in COMPILED if compiled.declared.name in self.inside)

    @property
    def preferred(self) -> tuple[CompiledFormat, ...]:
        """The declared formats that were met, most frequent first; those of this file alone come before."""
        met = (name for name, _ in self.counts.most_common())
        return (*self.own, *(BY_NAME[name] for name in met if name in BY_NAME))

    @property
    def verbatim(self) -> bool:
        """Whether each line's message and context appear in it as they are, so that raw lines can be searched."""
        return all(name in _VERBATIM or name in {c.declared.name for c in self.own} for name in self.counts)

    @property
    def streams(self) -> bool:
        """Whether lines of several writers may alternate."""
        return any(name in BY_NAME and BY_NAME[name].is_envelope for name in self.counts)

    @property
    def untimed(self) -> bool:
        """Whether lines have no time of their own, and no record from whose whole one is read."""
        whole = any(name in BY_NAME and BY_NAME[name].declared.finish for name in self.counts)
        return self.lines > 0 and self.timed < self.lines * _TIMED and not whole

    @property
    def name(self) -> str:
        """The formats in words."""
        known = [(name, count) for name, count in self.counts.most_common() if name not in _NO_FORMAT]
        total = sum(count for _, count in known)
        if not known or total * 2 < sum(self.counts[name] for name in ("timed text",)):
            return "text with times" if self.counts["timed text"] else "text without times"
        if known[0][1] >= 0.95 * total:
            return known[0][0]
        return "mixed: " + ", ".join(name for name, _ in known[:_MOST_NAMED])


def recognize_lines(
    lines: Iterable[str], year_of: float, *, zone: tzinfo = UTC, meanings: Mapping[str, float] | None = None
) -> RecognizedFormats:
    """The formats of these lines. Lines that continue a record do not count, except where nothing else is there."""
    texts = [text for text in lines if text]
    own = tuple(compile_format(declared) for text in texts if (declared := w3c_format(text)))
    reader = LogLineReader(zone, meanings, preferred=own)
    parsed = [reader.parse(text, year_of) for text in texts]
    starts = [one for one in parsed if one.starts] or parsed
    return RecognizedFormats(
        Counter(one.format for one in starts),
        lines=len(texts),
        timed=sum(one.line.time is not None for one in parsed),
        own=own,
        firsts=frozenset(text[0] for text in texts),
        inside=frozenset(reader.met_inside),
    )


def chosen_formats(name: str | None, pattern: str | None) -> RecognizedFormats | None:
    """What the settings say instead: a format by its name, or a pattern of its own with the groups of one.

    Raises ValueError for a format that is not declared.
    """
    if pattern:
        own = compile_format(
            LogFormat("pattern", "as the settings say", pattern, ("", "", ""), form="any", verbatim=False)
        )
        return RecognizedFormats(Counter({"pattern": 1}), 1, 1, (own,), only=True)
    if name is None:
        return None
    if name not in FORMAT_NAMES:
        raise ValueError(f"no log format is called {name}: choose one of {', '.join(FORMAT_NAMES)}")
    known = BY_NAME.get(name)
    return RecognizedFormats(Counter({name: 1}), 1, 1, (known,) if known else (), only=True)


def list_titles() -> Mapping[str, str]:
    """Every format's title by its name."""
    declared: Sequence[tuple[str, str]] = [(c.declared.name, c.declared.title) for c in COMPILED]
    return dict(
        [*declared, *((one.name, one.title) for one in JSON_FORMATS), ("logfmt", "logfmt, key=value")]
    )
