"""Restrictions of a run: read-only, rules of policy, and caps of its limits. They only ever get stricter.

A run keeps those that it began with, and every one that a later attempt, an answer or a branch was given. So it does
not matter who resumes it, or in which folder: a rule that held once holds until the run ends.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from opsleuth.graph.lifecycle.first_state import RunSettings
from opsleuth.graph.lifecycle.limit_defaults import default_caps
from opsleuth.state.limit_caps import NO_CAPS, LimitCaps
from opsleuth.tools.policy import Policy


@dataclass(frozen=True, slots=True)
class Restrictions:
    """What one invocation asks for on top: no changes at all, the path of a policy file, and caps of the limits.

    `always_capped` is for processes that drive runs of others: one that came without caps gets the defaults.
    """

    read_only: bool = False
    policy: str | None = None
    caps: LimitCaps = NO_CAPS
    always_capped: bool = False

    def __bool__(self) -> bool:
        return self.read_only or self.policy is not None or self.always_capped or self.caps != NO_CAPS

    def tighten_caps(self, settings: RunSettings) -> Mapping[str, Any] | None:
        """The caps of a run with these settings, as they are stored."""
        known = settings.caps
        if known is None and self.always_capped:
            known = default_caps(settings.planner, settings.model, self.caps.given).given
        tightened = LimitCaps.model_validate(known or {}).tightened_by(self.caps)
        return known if known is None and tightened == NO_CAPS else tightened.given

    def tighten_settings(self, settings: RunSettings) -> RunSettings:
        """The settings with these restrictions as well."""
        files = (settings.policy, *settings.added_policies)
        added = (self.policy,) if self.policy is not None and self.policy not in files else ()
        return replace(
            settings,
            read_only=settings.read_only or self.read_only,
            added_policies=(*settings.added_policies, *added),
            caps=self.tighten_caps(settings),
        )

    def apply(self, settings: RunSettings, policy_of: Callable[[RunSettings], Policy]) -> RunSettings:
        """The settings with these restrictions, and with the rules of the files as they are now.

        What is changed in a file later loosens nothing. Raises ConfigError for a policy file that is missing or broken.
        """
        restricted = self.tighten_settings(settings)
        if settings.rules is None or restricted.added_policies == settings.added_policies:
            return keep_rules(restricted, policy_of)
        known = list(settings.rules)
        added = [
            layer for layer in map(_keep_strict_rules, policy_of(restricted).to_json()) if layer["rules"]
        ]
        return replace(restricted, rules=[*known, *(layer for layer in added if layer not in known)])


NO_RESTRICTIONS = Restrictions()
_STRICT = ("deny", "ask")


def keep_rules(settings: RunSettings, policy_of: Callable[[RunSettings], Policy]) -> RunSettings:
    """The settings with the rules that hold now, where the run has none of its own yet. Raises ConfigError."""
    if settings.rules is not None:
        return settings
    return replace(settings, rules=policy_of(settings).to_json())


def _keep_strict_rules(layer: Mapping[str, Any]) -> dict[str, Any]:
    """A layer without what it allows: a file that is added later only tightens."""
    return {**layer, "rules": [rule for rule in layer["rules"] if rule["word"] in _STRICT]}
