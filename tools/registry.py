"""The tools of one run: what is offered, and the check that a request must pass before it may run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json

from opsleuth.state.calls import Call, CallGate, CallRequest, Risk
from opsleuth.state.canonical_json import canonical_sha256
from opsleuth.state.nearest_name import suggest_names
from opsleuth.tools.argument_errors import explain_invalid_arguments
from opsleuth.tools.policy import Policy, PolicyRuling
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.spec import Arguments, InvalidArgumentsError, ToolSpec


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """A request that passed: its typed arguments, the same as canonical JSON, and what policy says of it."""

    spec: ToolSpec
    arguments: Arguments
    canonical: dict[str, Any]
    target: str | None
    digest: str
    ruling: PolicyRuling

    def call(self, request: CallRequest, *, call_id: str, number: int) -> Call:
        """The request as a call of this turn."""
        return Call(
            id=call_id,
            number=number,
            tool=self.spec.name,
            arguments=self.canonical,
            purpose=request.purpose,
            tests=request.tests,
            risk=self.spec.risk,
            target=self.target,
            digest=self.digest,
            gate=self.ruling.gate,
            gate_reason=self.ruling.reason,
            repeat_of=request.repeat_of,
        )


class Toolbox:
    """All tools of a run.

    `specs` are the tools offered. `not_available` says in words which were left out because no source serves
    them. With `read_only` no tool that changes anything is offered.
    """

    def __init__(
        self,
        specs: Iterable[ToolSpec],
        sources: RunSources,
        policy: Policy | None = None,
        *,
        read_only: bool = False,
    ) -> None:
        self.policy, self.read_only = policy or Policy(), read_only
        known = [spec for spec in specs if not (read_only and spec.risk is not Risk.READ)]
        _refuse_duplicate_names(known)
        self._by_name: dict[str, ToolSpec] = {s.name: s for s in known if _is_served(s, sources)}
        self._unserved: Mapping[str, ToolSpec] = {s.name: s for s in known if not _is_served(s, sources)}
        self._substituted = tuple(
            s
            for s in self._by_name.values()
            if s.substitute and s.capability and not sources.serving(s.capability)
        )

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(spec for spec in self._by_name.values() if spec.described)

    def describe(self, spec: ToolSpec) -> None:
        """Take what has become known of a tool that is here already; how much harm it can do is not learned so."""
        if (known := self._by_name.get(spec.name)) is not None:
            self._by_name[spec.name] = replace(spec, risk=known.risk)

    @property
    def not_available(self) -> tuple[str, ...]:
        lost: dict[str, list[str]] = {}
        # Runbooks are advice, not data; a tool for a backend's own language is missed by nobody.
        for spec in (s for s in self._unserved.values() if s.capability not in ("runbooks", None)):
            lost.setdefault(spec.capability or "", []).append(spec.name)
        instead: dict[str, list[str]] = {}
        for spec in self._substituted:
            instead.setdefault(f"{spec.capability}: no source", []).append(
                f"{spec.name} reads {spec.substitute}"
            )
        unknown: dict[str, list[str]] = {}
        for spec in self._by_name.values():
            if not spec.described:
                unknown.setdefault(f"{spec.origin}: {spec.purpose}", []).append(spec.name)
        missing = (*((f"{kind}: no source", names) for kind, names in lost.items()), *unknown.items())
        return (
            *(f"{what} ({', '.join(names)})" for what, names in instead.items()),
            *(f"{what} ({', '.join(names)} not offered)" for what, names in missing),
        )

    def spec(self, name: str) -> ToolSpec:
        """The tool of this exact name. Raises InvalidArgumentsError that names the nearest ones."""
        if spec := self._by_name.get(name):
            return spec
        if spec := self._unserved.get(name):
            raise InvalidArgumentsError(
                f"{name} is not available: no source of this run serves {spec.capability or 'it'}"
            )
        raise InvalidArgumentsError(
            f"there is no tool {name!r} ({suggest_names(name, self._by_name, most=20)})"
        )

    def known(self, name: str) -> ToolSpec | None:
        """The tool of this name if it is offered."""
        return self._by_name.get(name)

    def capability_of(self, name: str) -> str | None:
        """The kind of source that a tool reads, None for one that reads none or is unknown."""
        spec = self._by_name.get(name)
        return spec.capability if spec else None

    def check(self, request: CallRequest) -> CheckedCall:
        """The request with typed and canonical arguments, its digest and gate.

        Raises InvalidArgumentsError; nothing is converted, completed or guessed.
        """
        spec = self.spec(request.tool)
        arguments = parse_arguments(spec, request.arguments)
        plain = arguments.model_dump(mode="json", exclude_none=True)
        target = spec.target(arguments)
        again = request.repeat_of if spec.risk is not Risk.READ else None
        return CheckedCall(
            spec,
            arguments,
            plain,
            target,
            compute_content_digest(spec.name, plain, target, again),
            self._ruling(spec, request, plain, target),
        )

    def ruling(self, call: Call) -> PolicyRuling:
        """What policy says of a call now: it may have changed since the call was planned, and so may its tool.

        A stored call whose risk, target or digest is not what the tool makes of its arguments is refused: people
        and rules would judge another call than the one that is run.
        """
        spec = self.known(call.tool)
        if spec is None:
            return PolicyRuling(CallGate.REFUSED, f"{call.tool} is not offered in this run any more")
        if not _call_fits_spec(call, spec):
            return PolicyRuling(
                CallGate.REFUSED, f"{call.tool} is not what it was when this was planned: request it again"
            )
        return self._ruling(spec, call, call.arguments, call.target)

    def _ruling(
        self,
        spec: ToolSpec,
        request: CallRequest | Call,
        arguments: Mapping[str, Any],
        target: str | None,
    ) -> PolicyRuling:
        ruling = self.policy.rule(spec, arguments, target)
        if request.repeat_of is not None and spec.risk is not Risk.READ and ruling.gate is CallGate.FREE:
            return PolicyRuling(
                CallGate.ASK, f"repeats {request.repeat_of} on purpose: a person confirms this exact call"
            )
        return ruling


def _call_fits_spec(call: Call, spec: ToolSpec) -> bool:
    try:
        target = spec.target(parse_arguments(spec, call.arguments))
    except InvalidArgumentsError:
        return False
    named = compute_content_digest(call.tool, call.arguments, target, call.repeat_of)
    return (call.risk, call.target, call.digest) == (spec.risk, target, named)


def compute_content_digest(
    tool: str, arguments: Mapping[str, Any], target: str | None, repeat_of: str | None = None
) -> str:
    """The digest of a call: equal for equal tool, canonical arguments and target. 64 hex digits."""
    named = {"tool": tool, "arguments": dict(arguments), "target": target}
    return canonical_sha256(named if repeat_of is None else named | {"repeat_of": repeat_of})


def parse_arguments(spec: ToolSpec, arguments: Mapping[str, Any]) -> Arguments:
    """The typed arguments of a request or of a stored call. Raises InvalidArgumentsError."""
    try:
        # From JSON text: strict mode then takes a list for a tuple, but still no text for a number.
        return spec.arguments.model_validate_json(to_json(arguments))
    except ValidationError as error:
        raise InvalidArgumentsError(explain_invalid_arguments(spec, error)) from None


def _is_served(spec: ToolSpec, sources: RunSources) -> bool:
    if spec.served_by is not None:
        return spec.served_by(sources)
    kinds = [kind for kind in (spec.capability, spec.substitute) if kind is not None]
    return not kinds or any(sources.serving(kind) for kind in kinds)


def _refuse_duplicate_names(specs: Iterable[ToolSpec]) -> None:
    seen: dict[str, ToolSpec] = {}
    for spec in specs:
        other = seen.setdefault(spec.name, spec)
        if other is not spec:
            raise ValueError(
                f"two tools are called {spec.name} ({other.origin}, {spec.origin}): rename one of them"
            )
