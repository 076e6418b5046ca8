"""The urgency of a run, from its alert's severity word."""

MOST_URGENT = 4
_WORDS = {
    4: ("critical", "page", "fatal", "emergency", "p1", "sev1", "1"),
    3: ("error", "high", "major", "p2", "sev2", "2"),
    2: ("warning", "medium", "minor", "p3", "sev3", "3"),
    1: ("low", "p4", "sev4", "4"),
    0: ("info", "informational", "none", "p5", "sev5", "5"),
}
_RANKS = {word: rank for rank, words in _WORDS.items() for word in words}
USUAL_RANK = 2
"""Of a question, and of an alert with an unknown word."""


def rank_severity(word: str | None) -> int:
    """0 to 4, the most urgent highest."""
    return _RANKS.get((word or "").strip().casefold(), USUAL_RANK)
