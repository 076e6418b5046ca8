"""A run as it happens: its events as lines, and where it stands on one line of stderr.

The status line exists on a terminal only, is drawn at most four times a second and erased before every other
line. Off a terminal a long silence is broken by a line that says what is being waited for.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from time import monotonic
from types import TracebackType
from typing import Self

from opsleuth.console import event_lines
from opsleuth.console.event_lines import Event
from opsleuth.console.screen import ERASE_LINE, LinePart, Screen
from opsleuth.console.time_formats import format_elapsed

TICK = 0.25
HEARTBEAT = 30.0
"""Seconds of silence after which a screen without a status line hears that the run is alive."""

OFFLINE = "offline"
"""The name of the planner that asks none."""


class RunProgress:
    """Where the run is, read from its events; `now` in seconds that never go back."""

    def __init__(self) -> None:
        self.turn, self.turns, self.node, self.evidence = 0, 0, "", 0
        self.model, self.heard_at, self.checking = "", 0.0, False
        self.cost, self.limit = Decimal(0), ""
        self.running: dict[str, tuple[str, float]] = {}
        self.changing: set[str] = set()
        self.refuted: set[str] = set()

    def take(self, event: Event, now: float) -> None:
        """One more event."""
        data, kind, self.heard_at = event.get("data") or {}, event.get("type"), now
        self.turn, self.node = event.get("turn") or self.turn, event.get("node") or self.node
        if kind in ("run.started", "run.resumed"):
            limits = data.get("limits") or {}
            self.turns, self.limit = limits.get("turns") or self.turns, str(limits.get("cost") or "")
            self.cost += Decimal(str(data.get("cost") or "0"))
            self.model = str((data.get("versions") or {}).get("model") or "")
        elif kind == "model.completed":
            self.cost += Decimal(str(data.get("usd") or "0"))
        elif kind == "effect.checked":
            self.checking = False
        elif kind == "hypothesis.updated":
            change = self.refuted.add if data.get("status") == "refuted" else self.refuted.discard
            change(str(data.get("id")))
        elif kind == "tool.started":
            self.running[str(data.get("id"))] = str(data.get("tool")), now
            if data.get("risk", "read") != "read":
                self.changing.add(str(data.get("id")))
        elif kind in ("tool.completed", "tool.canceled", "tool.denied"):
            self.running.pop(str(data.get("id")), None)
            self.checking = str(data.get("id")) in self.changing
            named = str(data.get("evidence") or "").removeprefix("E")
            counts = kind == "tool.completed" and not data.get("error")
            # By its number, so that a run that is resumed goes on counting.
            self.evidence = max(self.evidence + counts, int(named) if counts and named.isdecimal() else 0)

    def stopping(self) -> str:
        """What a signal stops: the look-ups that run. A change is not stopped; its own line says so."""
        reads = dict.fromkeys(tool for id_, (tool, _) in self.running.items() if id_ not in self.changing)
        return f"stopping {', '.join(reads)}".strip()

    def line(self, now: float) -> str:
        """`turn 2/30   act logs_search 12s   cost $0.04/1.00   evidence 2   1 ruled out`; for how long a model is waited for."""
        turn = f"turn {self.turn}/{self.turns}" if self.turns else f"turn {self.turn}"
        calls = ", ".join(
            f"{tool} {format_elapsed((now - since) * 1000)}" for tool, since in self.running.values()
        )
        cost = f"cost ${self.cost:.2f}{f'/{self.limit}' if self.limit else ''}" if self.cost else ""
        ruled = f"{len(self.refuted)} ruled out" if self.refuted else ""
        waited = self._describe_model_wait(now) if not calls else ""
        doing = waited or f"{self.node} {calls}".strip()
        parts = (turn, doing, cost, f"evidence {self.evidence}", ruled)
        return "   ".join(filter(None, parts))

    def _describe_model_wait(self, now: float) -> str:
        """`waiting for gpt-4o-mini, 23 s · Ctrl-C stops`; empty where no model is asked, or not yet for long.

        The rest of a turn takes no time that a person would notice, but for the check of a change.
        """
        waited = int(now - self.heard_at)
        if self.model in ("", OFFLINE) or self.checking or waited < 1:
            return ""
        return f"waiting for {self.model}, {waited} s · Ctrl-C stops"


class LiveView:
    """Listens to a run's events and shows them; a context, because the status line must go at the end.

    A reader of stdout that went away stops the run as Ctrl-C does, `broken` then says why.
    """

    def __init__(
        self,
        screen: Screen,
        status: Screen | None = None,
        *,
        json: bool = False,
        quiet: bool = False,
        verbose: bool = False,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._screen, self._status, self._clock = screen, status, clock
        self._json, self._quiet, self._verbose = json, quiet, verbose
        self._standing, self._drawn, self._spoke = RunProgress(), False, clock()
        self._lock, self._done = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._beat, name="status line", daemon=True)
        self.broken = False

    def __enter__(self) -> Self:
        if self._status is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()
        self._erase()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        with self._lock:
            self._standing.take(event, self._clock())
            if self.broken or self._quiet:
                return
            self._erase()
            try:
                self._write(event)
            except BrokenPipeError:
                self.broken = True
                _interrupt_program()

    def tick(self) -> None:
        """Draw the status line, or say that the run is alive if nothing was said for long."""
        with self._lock:
            if self._status is None or self.broken:
                return
            now = self._clock()
            line = self._standing.line(now)
            if self._status.live:
                self._status.stream.write(ERASE_LINE + self._status.render([line]))
                self._status.stream.flush()
                self._drawn = True
            elif now - self._spoke >= HEARTBEAT:
                self._status.line(f"still at it: {line}")
                self._spoke = now

    def announce_stop(self) -> None:
        """Say at once that a signal was heard: the process groups of a call may take a second to end."""
        with self._lock:
            self._erase()
            if self._status is not None and not self.broken:
                self._status.line(LinePart(self._standing.stopping(), "warn"))
                self._status.stream.flush()

    @contextmanager
    def still(self) -> Iterator[None]:
        """Nothing is drawn meanwhile: the terminal belongs to a question."""
        with self._lock:
            self._erase()
            yield

    def _write(self, event: Event) -> None:
        if self._json:
            event_lines.write_json(self._screen.stream, event)
        elif event_lines.is_shown_live(event, verbose=self._verbose):
            self._screen.line(*event_lines.format_event_line(event, self._screen))
            self._screen.stream.flush()
            self._spoke = self._clock()

    def _erase(self) -> None:
        if self._drawn and self._status is not None:
            self._status.stream.write(ERASE_LINE)
            self._status.stream.flush()
            self._drawn = False

    def _beat(self) -> None:
        while not self._done.wait(TICK):
            self.tick()


def _interrupt_program() -> None:
    """As Ctrl-C would; a shell has the jobs that it starts in the background ignore that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)
