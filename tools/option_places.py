"""A command without its options: a rule that denies `kubectl delete` means `kubectl -n prod delete` as well.

Whether an option takes the next word as its value is known to its program only. So both are tried: the readings serve rules
that tighten, which one fitting reading is enough for.
"""

from collections.abc import Iterator, Sequence

MOST_CHOICES = 3
"""Options that are tried with and without a value; with more, all are taken with one, and then all without."""


def move_options_back(words: Sequence[str]) -> Iterator[list[str]]:
    """The words of the command, its options after them, for each way in which the options may take values."""
    options = [word for word in words[1:] if word.startswith("-")]
    if not options:
        return
    if len(options) <= MOST_CHOICES:
        yield from _choose_values(list(words[1:]), list(words[:1]), [])
        return
    for takes_value in (True, False):
        yield _take_all(words, takes_value=takes_value)


def _choose_values(left: list[str], kept: list[str], moved: list[str]) -> Iterator[list[str]]:
    if not left:
        yield kept + moved
        return
    word, rest = left[0], left[1:]
    if not word.startswith("-"):
        yield from _choose_values(rest, [*kept, word], moved)
        return
    yield from _choose_values(rest, kept, [*moved, word])
    if rest and not rest[0].startswith("-") and "=" not in word:
        yield from _choose_values(rest[1:], kept, [*moved, word, rest[0]])


def _take_all(words: Sequence[str], *, takes_value: bool) -> list[str]:
    kept, moved = list(words[:1]), list[str]()
    after_option = False
    for word in words[1:]:
        is_moved = word.startswith("-") or (after_option and takes_value)
        (moved if is_moved else kept).append(word)
        after_option = word.startswith("-") and "=" not in word
    return kept + moved
