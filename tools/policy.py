"""What may run by itself, what a person must confirm, what is refused.

The risk of a tool gives its gate; layers of policy change it. Layers merge as deny > ask > allow: the
strictest word of any layer holds. A layer that is not trusted (a project's file) may only tighten.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from opsleuth.state.calls import Gate, Risk
from opsleuth.state.canonical import digest
from opsleuth.tools.spec import ToolSpec


class Ruling(NamedTuple):
    """A gate and the reason for it, as one sentence."""

    gate: Gate
    reason: str


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of policy. `deny`, `ask` and `allow` hold shell patterns of tool names; `opens` exact names.

    Only `opens` makes an irreversible tool possible at all, and then it is asked. An untrusted layer's
    `allow` and `opens` have no effect.
    """

    name: str
    trusted: bool = False
    deny: frozenset[str] = frozenset()
    ask: frozenset[str] = frozenset()
    allow: frozenset[str] = frozenset()
    opens: frozenset[str] = frozenset()


class Policy:
    """The rules of one run; `version` identifies them in approvals."""

    def __init__(self, layers: Iterable[Layer] = ()) -> None:
        self.layers = tuple(layers)
        self.version = digest([_plain(layer) for layer in self.layers])[:12]

    def rule(self, spec: ToolSpec, arguments: Mapping[str, Any], target: str | None) -> Ruling:
        """The gate of this call."""
        del arguments, target
        if denied := self._says("deny", spec):
            return Ruling(Gate.REFUSED, f"the policy of {denied.name} denies {spec.name}")
        if spec.risk is Risk.IRREVERSIBLE:
            return self._irreversible(spec)
        if asked := self._says("ask", spec):
            return Ruling(Gate.ASK, f"the policy of {asked.name} asks for every {spec.name}")
        if spec.risk is Risk.HIGH:
            return self._high(spec)
        return Ruling(Gate.FREE, "")

    def _irreversible(self, spec: ToolSpec) -> Ruling:
        for layer in self.layers:
            if layer.trusted and spec.name in layer.opens:
                return Ruling(Gate.ASK, f"irreversible; opened by name in the policy of {layer.name}")
        return Ruling(
            Gate.REFUSED,
            f"irreversible: {spec.name} runs only if the operator's policy file opens it by name",
        )

    def _high(self, spec: ToolSpec) -> Ruling:
        if allowed := self._says("allow", spec):
            return Ruling(Gate.FREE, f"the policy of {allowed.name} allows {spec.name}")
        return Ruling(Gate.ASK, "high risk: a person confirms this exact call")

    def _says(self, word: str, spec: ToolSpec) -> Layer | None:
        for layer in self.layers:
            patterns: frozenset[str] = getattr(layer, word)
            if (layer.trusted or word != "allow") and any(fnmatchcase(spec.name, p) for p in patterns):
                return layer
        return None


def _plain(layer: Layer) -> dict[str, object]:
    rules = {word: sorted(getattr(layer, word)) for word in ("deny", "ask", "allow", "opens")}
    return {"name": layer.name, "trusted": layer.trusted, **rules}
