"""A count with its noun, as people write it."""


def format_count(count: int, one: str, many: str = "") -> str:
    """`1 change`, `2 changes`, `1,200 rows`; `many` where an s alone does not make the plural."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def format_times(count: int) -> str:
    """`once`, `2 times`."""
    return "once" if count == 1 else format_count(count, "time")
