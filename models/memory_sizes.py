"""How much of a run a planner is shown in full, as facts and as headlines: all of it follows the model's window."""

from typing import NamedTuple

from opsleuth.state.budget import Budget


class MemorySizes(NamedTuple):
    """Tokens, unless said. What is older than `whole` and `most_turns` allow is folded.

    `turn` is the most that the calls of one turn take together, `call` the most of one of them. More turns than
    `most_turns` fold down to `kept_turns`, so that requests stay level while a fold, which changes the beginning of
    the request, stays rare.
    """

    whole: int
    turn: int
    call: int
    folded: int
    most_turns: int
    kept_turns: int


def compute_status_size(window: int) -> int:
    """The most tokens of the last message, which says where the run is."""
    return min(window // 8, max(2_000, window // 16))


def compute_memory_sizes(window: int, room: int, thrift: int = 1) -> MemorySizes:
    """The sizes for a window, of which `room` is left beside prompt, tools, question and the run's standing.

    With `thrift` 2 or 4 a half or a quarter of a large memory is kept, never less than a small window's.
    """
    whole = min(room * 2 // 3, max(8_000, window * 3 // 8 // thrift))
    turn = whole * 3 // 4
    most_turns = min(max(window // 4_000, 6), 32)
    return MemorySizes(
        whole=whole,
        turn=turn,
        call=min(turn, max(3_000, min(window // 8, 12_000))),
        folded=min(room // 3, max(2_000, window // 12)),
        most_turns=most_turns,
        kept_turns=max(most_turns // 3, 2),
    )


def choose_thrift(budget: Budget) -> int:
    """How scarce tokens are: 2 when less than half of the run's tokens is left, 4 below a quarter.

    It changes twice in a run at most, since each change folds the past again.
    """
    left, limit = budget.limits.tokens - budget.used.tokens, budget.limits.tokens
    if left * 2 >= limit:
        return 1
    return 2 if left * 4 >= limit else 4


def share_room(wanted: list[int], room: int) -> int:
    """The largest size of each that lets all fit into `room` together: what needs less leaves its share to the others."""
    left = room
    for place, size in enumerate(sorted(wanted)):
        share = left // (len(wanted) - place)
        if size > share:
            return share
        left -= size
    return max(wanted, default=room)
