"""`show RUN@C` and `watch`: a checkpoint of a run with what the model was shown there, and a run as it happens."""

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opsleuth.checkpoints.history import END, Point, split
from opsleuth.checkpoints.processes import is_alive, standing
from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.store import Store
from opsleuth.console import events
from opsleuth.console import text as texts
from opsleuth.console.live import Live
from opsleuth.console.options import Options
from opsleuth.console.output import note, screen_of
from opsleuth.console.screen import Line, Part, Screen, open_screen
from opsleuth.console.stepper import views
from opsleuth.state.clock import SystemClock

POLL_SECONDS = 0.3
"""How often `watch` looks for new events."""

_CLOCK = SystemClock()
Snapshot = Mapping[str, Any]


def show_point(options: Options, address: str, *, snapshot: bool) -> int:
    """`show RUN@C`: the state there in short; with `snapshot` what the model was sent and said in that turn."""
    run, spec = split(address)
    with _opened(options) as store:
        points = store.history.list(store.runs.find(run).id)
        point = store.history.find(store.runs.find(run).id, spec or "head")
        trace = _of_turn(store, point)
        shown = _snapshots(store, point.run, trace) if snapshot else []
    decisions = [dict(e["data"]) for e in trace if e["type"] == "decision.made"]
    if options.json:
        facts = {"run": point.run, "ckpt": point.name, "id": point.id, "next": point.next, "turn": point.turn}
        told = {"decisions": decisions, "snapshots": shown} if snapshot else {"state": point.values}
        events.write_json(sys.stdout, facts | told)
        return 0
    screen = screen_of(options)
    screen.line(Part(f"{point.run}@{point.name}", "title"), f"  stored {screen.times.full(point.at)}")
    screen.line(*views.loop(point, screen))
    screen.lines(views.pending(point.values, {}))
    if snapshot:
        screen.lines(_exchanges(decisions, shown, point, screen))
    else:
        before = points[point.number - 1] if point.number else None
        screen.lines(views.changed(before, point))
        screen.lines(views.printed("", point.values, pretty=False))
    return 0


def _of_turn(store: Store, point: Point) -> Sequence[events.Event]:
    """The events of the decision that begins at this checkpoint, or else of the turn that it is in."""
    told = store.events.read(point.run, types=("model.completed", "decision.made"))
    return [e for e in told if e["ckpt"] == point.id] or [e for e in told if e["turn"] == point.turn]


def _snapshots(store: Store, run: str, trace: Iterable[events.Event]) -> list[Snapshot]:
    """Each exchange with a model, its messages put together again."""
    return [
        {
            "role": event["data"].get("role"),
            "model": document["model"],
            "messages": [store.snapshots.get(run, name) for name in document["messages"]],
            "tools": [tool.get("name") for tool in store.snapshots.get(run, document["tools"])["tools"]],
            "reply": store.snapshots.get(run, document["reply"])["reply"],
        }
        for event in trace
        if event["type"] == "model.completed"
        for document in [store.snapshots.get(run, event["data"]["snapshot"])]
    ]


def _exchanges(
    decisions: Sequence[Snapshot], shown: Sequence[Snapshot], point: Point, screen: Screen
) -> Iterable[Line]:
    if not shown:
        yield [
            Part(
                f"no model was asked in turn {point.turn}: the offline planner decides from the state", "dim"
            )
        ]
    for exchange in shown:
        yield [Part(f"{exchange['role']}: {exchange['model']} was sent", "title")]
        for message in exchange["messages"]:
            yield [Part(f"{message.get('role', '?')}:", "id")]
            yield from _barred(_text(message.get("content")), screen)
        yield [Part("and said", "title")]
        yield from _barred(_text(exchange["reply"]), screen)
    for decision in decisions:
        yield [Part("decision: ", "title"), str(decision.get("reason", ""))]


def _barred(text: str, screen: Screen) -> Iterable[Line]:
    bar = f"{screen.clean('│')} "
    for line in texts.clean_lines(text, screen.encoding):
        for piece in texts.wrap(line, screen.width - 2) if screen.width else [line]:
            yield [Part(bar, "warn"), piece]


def _text(content: Any) -> str:  # noqa: ANN401 - any JSON value
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=1)


def watch(options: Options, run_id: str) -> int:
    """`watch`: the run's course so far, then each event as it is stored, to the end of the attempt."""
    status = None if options.json or options.quiet else open_screen(sys.stderr, plain=options.plain)
    live = Live(screen_of(options), status, json=options.json, verbose=bool(options.verbose))
    with _opened(options) as store, live:
        run = store.runs.find(run_id)
        after = 0
        while not live.broken:
            alive = is_alive(store.runs.find(run.id))
            rows = store.events.read(run.id, after=after)
            for event in rows:
                live(event)
            after = rows[-1]["seq"] if rows else after
            if not rows and not alive:
                break
            if not rows:
                time.sleep(POLL_SECONDS)
        left = store.runs.find(run.id)
    if not options.quiet and not options.json:
        hint = f"report: opsleuth report {run.id}" if left.node == END else f"next: opsleuth resume {run.id}"
        note(f"{standing(left)}. {hint}")
    return 0


def _opened(options: Options) -> Store:
    return Store.open(options.database, _CLOCK, Redactor(), read_only=True)
