"""Which known services a question mentions, by name or alias: exactly, or not at all."""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from opsleuth.verification.name_extraction import find_mentions


class MentionedServices(NamedTuple):
    """The services that a text names.

    `matched`: `services` in order of mention. `ambiguous`: one mention fits several, `services` holds them all.
    `none`: nothing fits exactly; `services` holds names that share a word with the text, to be offered, not used.
    """

    outcome: Literal["matched", "ambiguous", "none"]
    services: tuple[str, ...]
    words: tuple[str, ...] = ()


def find_mentioned_services(text: str, known: Mapping[str, Collection[str]]) -> MentionedServices:
    """The services of `known` (name to aliases) that `text` mentions; the longest fit wins, never a guess.

    First as written, ignoring case; then also with spaces, `-` and `_` taken as alike ("orders API").
    """
    spoken = _services_by_spoken_name(known)
    spans = find_mentions(text, spoken)
    if spans:
        return _resolve_mentions(text, text, spans, spoken)
    joined: dict[str, set[str]] = defaultdict(set)
    for name, services in spoken.items():
        if _unify_separators(name) != name or " " in name:
            joined[_unify_separators(name)] |= services
    loose = _unify_separators(text)
    spans = [(a, b) for a, b in find_mentions(loose, joined) if not _belongs_to_longer_name(text, a, b)]
    if spans:
        return _resolve_mentions(text, loose, spans, joined)
    return MentionedServices("none", _find_near_names(text, known))


def _belongs_to_longer_name(text: str, start: int, end: int) -> bool:
    """Whether the words belong to a longer name (`old-orders-api` is not `orders-api`)."""
    return text[max(0, start - 1) : start] in ("-", "_") or text[end : end + 1] in ("-", "_")


def _services_by_spoken_name(known: Mapping[str, Collection[str]]) -> dict[str, set[str]]:
    spoken: dict[str, set[str]] = defaultdict(set)
    for service, aliases in known.items():
        for name in (service, *aliases):
            if name.strip():
                spoken[name.strip()].add(service)
    return spoken


def _unify_separators(text: str) -> str:
    return re.sub(r"[-_ ]", " ", text)


def _resolve_mentions(
    original: str, text: str, spans: Sequence[tuple[int, int]], spoken: Mapping[str, set[str]]
) -> MentionedServices:
    folded: dict[str, set[str]] = defaultdict(set)
    for name, services in spoken.items():
        folded[name.lower()] |= services
    # Where case alone tells two names apart, the exact spelling decides.
    fits = [spoken.get(text[a:b]) or folded[text[a:b].lower()] for a, b in spans]
    words = tuple(original[a:b] for a, b in spans)
    if unclear := [fit for fit in fits if len(fit) > 1]:
        return MentionedServices("ambiguous", tuple(sorted(unclear[0])), words)
    return MentionedServices("matched", tuple(dict.fromkeys(next(iter(fit)) for fit in fits)), words)


def _find_near_names(text: str, known: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    words = set(re.findall(r"[a-z0-9]{3,}", text[:20_000].lower())) - _COMMON
    return tuple(name for name in known if words.intersection(re.findall(r"[a-z0-9]{3,}", name.lower())))[:8]


_COMMON = frozenset(
    {"the", "service", "api", "and", "for", "why", "slow", "pod", "app", "prod", "has", "are"}
)
