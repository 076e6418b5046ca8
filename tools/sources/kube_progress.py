"""How far the lists of a cluster were read: a fetch that ran out of time is continued by the next one."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from opsleuth.state.clock import Clock
from opsleuth.tools.sources.kube_documents import Document, share_parts_of_twins

# A server forgets the token of the next page after five minutes.
_RESUMED_SECONDS = 120.0
# As fresh as what the sources keep of the last minutes.
_REUSED_SECONDS = 15.0


@dataclass(slots=True)
class PartialList:
    """A list as far as it was read: `more` is the token of its next page, `at` when the last one came.

    Two fetches at once may want the same list: the `lock` lets one of them read it.
    """

    at: float
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    items: list[Mapping[str, Any]] = field(default_factory=list)
    more: str = ""
    is_complete: bool = False
    share: Callable[[Document], Document] = field(default_factory=share_parts_of_twins)


class ListProgress:
    """The lists of one source. A fetch that ends well lets go of them, but for those that another one soon needs."""

    def __init__(self, clock: Clock, reused: str = "") -> None:
        self._clock = clock
        self._reused = reused
        self._lists: dict[str, PartialList] = {}
        self._is_cut = False
        self.pages = 0

    def begin(self) -> None:
        """Forget what has become too old; until `end` the fetch counts as cut short."""
        now = self._clock.monotonic()
        longest = _RESUMED_SECONDS if self._is_cut else _REUSED_SECONDS
        self._lists = {key: found for key, found in self._lists.items() if now - found.at <= longest}
        self._is_cut, self.pages = True, 0

    def end(self) -> None:
        self._is_cut = False
        self._lists = {
            key: found for key, found in self._lists.items() if found.is_complete and key == self._reused
        }

    def take(self, key: str) -> PartialList:
        """The list of this key as far as it was read."""
        return self._lists.setdefault(key, PartialList(self._clock.monotonic()))

    def drop(self, key: str) -> None:
        self._lists.pop(key, None)

    def note_page(self, found: PartialList) -> None:
        self.pages += 1
        found.at = self._clock.monotonic()
