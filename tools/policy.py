"""What may run by itself, what a person must confirm, what is refused.

The risk of a tool gives its gate; rules change it. Layers of rules merge as deny > ask > allow: the strictest
word of any layer holds. A layer that is not trusted (a project's file) may only tighten.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

from opsleuth.state.calls import Gate, Risk
from opsleuth.state.canonical import digest
from opsleuth.tools.readings import UNREADABLE, readings, spellings
from opsleuth.tools.spec import ToolSpec

Word = Literal["deny", "ask", "allow", "open"]

SECRETS = (
    "*printenv*", "env", "*/proc/*/environ*", "*get secret*", "*get -o* secret*", "*describe secret*", "*id_rsa*",
    "*id_ed25519*", "*.pem", "*.pem *", "*.key", "*.key *", "*/etc/shadow*", "*vault read*", "*vault kv get*",
    "*secretsmanager get*", "*.aws/credentials*", "*.kube/config*", "*token create*", "*.env", "*.netrc*",
)  # fmt: skip
"""Commands that print secrets: never without a person, whatever grade somebody gave their tool."""


_LOOSENS = frozenset({"allow", "open"})


class Ruling(NamedTuple):
    """A gate and the reason for it, as one sentence."""

    gate: Gate
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. Patterns are shell patterns; an empty one fits everything, `arguments` by the argument's name.

    `open` is for one irreversible tool by its exact name. `line` is where it stands in its file.
    """

    word: Word
    tools: tuple[str, ...] = ("*",)
    targets: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    arguments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reason: str = ""
    line: int | None = None

    def fits(self, spec: ToolSpec, arguments: Mapping[str, Any], target: str | None) -> bool:
        """Whether the rule speaks of this call. Any reading of it will do; to loosen, it takes all of them."""
        strict = self.word in _LOOSENS
        exact = self.word == "open"
        return (
            (spec.name in self.tools if exact else _fits(self.tools, (spec.name.casefold(),), strict=strict))
            and (not self.targets or _fits_target(self.targets, target or "", strict=strict))
            and (not self.environments or _fits(self.environments, readings(spec.environment), strict=strict))
            and all(self._argument(name, patterns, arguments) for name, patterns in self.arguments.items())
        )

    def _argument(self, name: str, patterns: tuple[str, ...], arguments: Mapping[str, Any]) -> bool:
        """`*` as a name means any argument."""
        values = list(arguments.values()) if name == "*" else [arguments[name]] if name in arguments else []
        if self.word in _LOOSENS:
            return bool(values) and all(_fits(patterns, readings(v), strict=True) for v in values)
        return any(_fits(patterns, readings(value), strict=False) for value in values)


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of policy. `deny`, `ask` and `allow` hold shell patterns of tool names; `opens` exact names.

    `rules` say more than names can. Only `opens` (or an `open` rule) makes an irreversible tool possible at all,
    and then it is asked. An untrusted layer's `allow` and `opens` have no effect.
    """

    name: str
    trusted: bool = False
    deny: frozenset[str] = frozenset()
    ask: frozenset[str] = frozenset()
    allow: frozenset[str] = frozenset()
    opens: frozenset[str] = frozenset()
    rules: tuple[Rule, ...] = ()

    def all_rules(self) -> Iterator[Rule]:
        """Everything that the layer says, as rules."""
        named: Mapping[Word, frozenset[str]] = {
            "deny": self.deny, "ask": self.ask, "allow": self.allow, "open": self.opens,
        }  # fmt: skip
        for word, tools in named.items():
            if tools:
                yield Rule(word=word, tools=tuple(sorted(tools)))
        yield from self.rules


class Said(NamedTuple):
    """A rule that speaks of a call, and the layer that holds it."""

    layer: Layer
    rule: Rule

    def words(self, what: str) -> str:
        where = f", line {self.rule.line}" if self.rule.line else ""
        why = f": {self.rule.reason}" if self.rule.reason else ""
        return f"the policy of {self.layer.name}{where} {what}{why}"


class Policy:
    """The rules of one run; `version` identifies them in approvals."""

    def __init__(self, layers: Iterable[Layer] = ()) -> None:
        self.layers = tuple(layers)
        self.version = digest([_plain(layer) for layer in self.layers])[:12]

    def rule(self, spec: ToolSpec, arguments: Mapping[str, Any], target: str | None) -> Ruling:
        """The gate of this call, and which rule gives it."""
        call = (spec, arguments, target)
        if denied := self._says("deny", *call):
            return Ruling(Gate.REFUSED, denied.words(f"denies {spec.name}"))
        if spec.risk is Risk.IRREVERSIBLE:
            if opened := self._says("open", *call):
                return Ruling(Gate.ASK, "irreversible; " + opened.words(f"opens {spec.name} by name"))
            return Ruling(
                Gate.REFUSED,
                f"irreversible: {spec.name} runs only if the operator's policy file opens it by name",
            )
        if asked := self._says("ask", *call):
            return Ruling(Gate.ASK, asked.words(f"asks for {spec.name}"))
        if _prints_secrets(spec, arguments):
            return Ruling(Gate.ASK, "this command may print secrets: a person confirms it")
        if spec.risk is not Risk.HIGH:
            return Ruling(Gate.FREE, "")
        if allowed := self._says("allow", *call):
            return Ruling(Gate.FREE, allowed.words(f"allows {spec.name}"))
        return Ruling(Gate.ASK, "high risk: a person confirms this exact call")

    def _says(
        self, word: Word, spec: ToolSpec, arguments: Mapping[str, Any], target: str | None
    ) -> Said | None:
        for layer in self.layers:
            if layer.trusted or word in ("deny", "ask"):
                for rule in layer.all_rules():
                    if rule.word == word and rule.fits(spec, arguments, target):
                        return Said(layer, rule)
        return None


def _fits(patterns: Iterable[str], texts: Iterable[str], *, strict: bool) -> bool:
    """Whether the patterns fit any text, or, `strict`, every one. What cannot be read fits no allow, every deny."""
    folded = [pattern.casefold() for pattern in patterns]
    fitting = (
        not strict if text == UNREADABLE else any(fnmatchcase(text, pattern) for pattern in folded)
        for text in texts
    )
    return all(fitting) if strict else any(fitting)


def _fits_target(patterns: Iterable[str], target: str, *, strict: bool) -> bool:
    """A target `plane/orders-api` can also be named by its last part."""
    names = (target, target.rpartition("/")[2])
    texts = spellings if strict else readings
    return any(_fits(patterns, texts(name), strict=strict) for name in names)


def _prints_secrets(spec: ToolSpec, arguments: Mapping[str, Any]) -> bool:
    if not spec.runs_commands:
        return False
    return any(_fits(SECRETS, readings(value), strict=False) for value in (spec.name, *arguments.values()))


def _plain(layer: Layer) -> dict[str, object]:
    rules = [
        [
            r.word,
            list(r.tools),
            list(r.targets),
            list(r.environments),
            {k: list(v) for k, v in r.arguments.items()},
        ]
        for r in layer.all_rules()
    ]
    return {"name": layer.name, "trusted": layer.trusted, "rules": rules}
