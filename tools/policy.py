"""What may run by itself, what a person must confirm, what is refused.

The risk of a tool gives its gate; rules change it. Layers of rules merge as deny > ask > allow: the strictest
word of any layer holds. A layer that is not trusted (a project's file) may only tighten.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

from opsleuth.state.calls import CallGate, Risk
from opsleuth.state.canonical_json import canonical_sha256
from opsleuth.tools.argument_variants import UNREADABLE, iterate_spellings, list_variants
from opsleuth.tools.spec import ToolSpec

RuleEffect = Literal["deny", "ask", "allow", "open"]

SECRET_PRINTING_PATTERNS = (
    "*printenv*", "env", "*/proc/*/environ*", "*get secret*", "*get -o* secret*", "*describe secret*", "*id_rsa*",
    "*id_ed25519*", "*.pem", "*.pem *", "*.key", "*.key *", "*/etc/shadow*", "*vault read*", "*vault kv get*",
    "*secretsmanager get*", "*.aws/credentials*", "*.kube/config*", "*token create*", "*.env", "*.netrc*",
)  # fmt: skip
"""Commands that print secrets: never without a person, whatever grade somebody gave their tool."""


_STRICTNESS = (CallGate.FREE, CallGate.ASK, CallGate.REFUSED)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?")
_LOOSENS = frozenset({"allow", "open"})


class PolicyRuling(NamedTuple):
    """A gate and the reason for it, as one sentence."""

    gate: CallGate
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """One rule. Patterns are shell patterns; an empty one fits everything, `arguments` by the argument's name.

    `open` is for one irreversible tool by its exact name. `line` is where it appears in its file.
    """

    word: RuleEffect
    tools: tuple[str, ...] = ("*",)
    targets: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    arguments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reason: str = ""
    line: int | None = None

    def fits(self, spec: ToolSpec, arguments: Mapping[str, Any], target: str | None) -> bool:
        """Whether the rule is about this call. Any reading of it will do; to loosen, it takes all of them."""
        strict = self.word in _LOOSENS
        exact = self.word == "open"
        return (
            (
                spec.name in self.tools
                if exact
                else _patterns_fit(self.tools, (spec.name.casefold(),), strict=strict)
            )
            and (not self.targets or _fits_target(self.targets, target or "", strict=strict))
            and (
                not self.environments
                or _patterns_fit(self.environments, list_variants(spec.environment), strict=strict)
            )
            and all(
                self._argument(name, patterns, arguments, commands=spec.runs_commands)
                for name, patterns in self.arguments.items()
            )
        )

    def _argument(
        self, name: str, patterns: tuple[str, ...], arguments: Mapping[str, Any], *, commands: bool
    ) -> bool:
        """`*` as a name means any argument."""
        values = list(arguments.values()) if name == "*" else [arguments[name]] if name in arguments else []
        fits = (
            _patterns_fit(
                patterns,
                list_variants(v, patterns, commands=commands, tightens=self.word not in _LOOSENS),
                strict=self.word in _LOOSENS,
            )
            for v in values
        )
        return bool(values) and all(fits) if self.word in _LOOSENS else any(fits)


@dataclass(frozen=True, slots=True)
class PolicyLayer:
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
    rules: tuple[PolicyRule, ...] = ()

    def all_rules(self) -> Iterator[PolicyRule]:
        """Everything that the layer says, as rules."""
        named: Mapping[RuleEffect, frozenset[str]] = {
            "deny": self.deny, "ask": self.ask, "allow": self.allow, "open": self.opens,
        }  # fmt: skip
        for word, tools in named.items():
            if tools:
                yield PolicyRule(word=word, tools=tuple(sorted(tools)))
        yield from self.rules


class MatchedRule(NamedTuple):
    """A rule that is about a call, and the layer that holds it."""

    layer: PolicyLayer
    rule: PolicyRule

    def words(self, what: str) -> str:
        where = f", line {self.rule.line}" if self.rule.line else ""
        why = f": {self.rule.reason}" if self.rule.reason else ""
        return f"the policy of {self.layer.name}{where} {what}{why}"


class Policy:
    """The rules of one run; `version` identifies them in approvals.

    `earlier` are the rules that the run began with, None where they are not known: the stricter of both holds.
    """

    def __init__(self, layers: Iterable[PolicyLayer] = (), earlier: "Policy | None" = None) -> None:
        self.layers, self.earlier = tuple(layers), earlier
        records = [_layer_record(layer) for layer in (*(earlier.layers if earlier else ()), *self.layers)]
        distinct = [record for number, record in enumerate(records) if record not in records[:number]]
        self.version = canonical_sha256(distinct)[:12]

    def under_earlier(self, layers: Iterable[PolicyLayer]) -> "Policy":
        """These rules, but nothing that the rules of `layers` ask about or deny becomes free by them."""
        return Policy(self.layers, Policy(layers))

    def to_json(self) -> list[dict[str, Any]]:
        """All layers as JSON, for `read_policy_layers`."""
        return [
            {
                "name": layer.name,
                "trusted": layer.trusted,
                "rules": [_rule_to_json(r) for r in layer.all_rules()],
            }
            for layer in self.layers
        ]

    def rule(self, spec: ToolSpec, arguments: Mapping[str, Any], target: str | None) -> PolicyRuling:
        """The gate of this call, and which rule gives it."""
        now = self._rule_by_layers(spec, arguments, target)
        if self.earlier is None:
            return now
        then = self.earlier.rule(spec, arguments, target)
        return then if _STRICTNESS.index(then.gate) > _STRICTNESS.index(now.gate) else now

    def _rule_by_layers(
        self, spec: ToolSpec, arguments: Mapping[str, Any], target: str | None
    ) -> PolicyRuling:
        call = (spec, arguments, target)
        if denied := self._says("deny", *call):
            return PolicyRuling(CallGate.REFUSED, denied.words(f"denies {spec.name}"))
        if spec.risk is Risk.IRREVERSIBLE:
            if opened := self._says("open", *call):
                return PolicyRuling(
                    CallGate.ASK, "irreversible; " + opened.words(f"opens {spec.name} by name")
                )
            return PolicyRuling(
                CallGate.REFUSED,
                f"irreversible: {spec.name} runs only if the operator's policy file opens it by name",
            )
        if asked := self._says("ask", *call):
            return PolicyRuling(CallGate.ASK, asked.words(f"asks for {spec.name}"))
        if _prints_secrets(spec, arguments):
            return PolicyRuling(CallGate.ASK, "this command may print secrets: a person confirms it")
        if spec.risk is not Risk.HIGH:
            return PolicyRuling(CallGate.FREE, "")
        if allowed := self._says("allow", *call):
            return PolicyRuling(CallGate.FREE, allowed.words(f"allows {spec.name}"))
        return PolicyRuling(CallGate.ASK, "high risk: a person confirms this exact call")

    def _says(
        self, word: RuleEffect, spec: ToolSpec, arguments: Mapping[str, Any], target: str | None
    ) -> MatchedRule | None:
        for layer in self.layers:
            if layer.trusted or word in ("deny", "ask"):
                for rule in layer.all_rules():
                    if rule.word == word and rule.fits(spec, arguments, target):
                        return MatchedRule(layer, rule)
        return None


def _patterns_fit(patterns: Iterable[str], texts: Iterable[str], *, strict: bool) -> bool:
    """Whether the patterns fit any text, or, `strict`, every one. What cannot be read fits no allow, every deny."""
    folded = [pattern.casefold() for pattern in patterns]
    fitting = (
        not strict
        if text == UNREADABLE
        else any(fnmatchcase(text, pattern) or _is_same_number(text, pattern) for pattern in folded)
        for text in texts
    )
    return all(fitting) if strict else any(fitting)


def _is_same_number(text: str, pattern: str) -> bool:
    """Whether both are numbers, and equal: `0` is `0.0`, `-0` and `0e3`."""
    if not (_NUMBER.fullmatch(text) and _NUMBER.fullmatch(pattern)):
        return False
    try:
        return Decimal(text) == Decimal(pattern)
    except InvalidOperation:
        return False


def _fits_target(patterns: Iterable[str], target: str, *, strict: bool) -> bool:
    """A target `plane/orders-api` can also be named by its last part."""
    names = (target, target.rpartition("/")[2])
    texts = iterate_spellings if strict else list_variants
    return any(_patterns_fit(patterns, texts(name), strict=strict) for name in names)


def _prints_secrets(spec: ToolSpec, arguments: Mapping[str, Any]) -> bool:
    if not spec.runs_commands:
        return False
    return any(
        _patterns_fit(SECRET_PRINTING_PATTERNS, list_variants(value), strict=False)
        for value in (spec.name, *arguments.values())
    )


def read_policy_layers(stored: Iterable[Mapping[str, Any]]) -> tuple[PolicyLayer, ...]:
    """The layers that `Policy.to_json` wrote."""
    return tuple(
        PolicyLayer(
            layer["name"],
            trusted=bool(layer["trusted"]),
            rules=tuple(_rule_from_json(rule) for rule in layer["rules"]),
        )
        for layer in stored
    )


def _rule_to_json(rule: PolicyRule) -> dict[str, Any]:
    return {
        "word": rule.word,
        "tools": list(rule.tools),
        "targets": list(rule.targets),
        "environments": list(rule.environments),
        "arguments": {name: list(patterns) for name, patterns in rule.arguments.items()},
        "reason": rule.reason,
        "line": rule.line,
    }


def _rule_from_json(stored: Mapping[str, Any]) -> PolicyRule:
    names = ("tools", "targets", "environments")
    arguments = {name: tuple(patterns) for name, patterns in stored["arguments"].items()}
    return PolicyRule(**{**stored, **{name: tuple(stored[name]) for name in names}, "arguments": arguments})


def _layer_record(layer: PolicyLayer) -> dict[str, object]:
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
