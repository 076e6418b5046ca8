"""The load of SQL statements in a scene, read every few minutes before and after the onset."""

import math
from collections.abc import Mapping

from opsleuth.scenarios.case_folder import CaseFolderWriter, format_utc, round_figure
from opsleuth.scenarios.fault_propagation import ServiceLevels, compute_levels
from opsleuth.scenarios.scene import Scene

INTERVAL = 600  # seconds; each capture covers the interval before it
_WAITS: Mapping[str, float] = {"CPU": 0.8, "IO:DataFileRead": 0.2}


def write_statements(scene: Scene, case: CaseFolderWriter) -> None:
    """Add `statements.jsonl`: per capture and statement the calls, mean and total time, waits and rows."""
    timing = scene.timing
    captured = timing.end
    while captured - INTERVAL >= timing.start:
        # The state in the middle of the interval stands for all of it.
        moment = captured - INTERVAL / 2
        now = compute_levels(scene.world, scene.effects, moment)
        for service in scene.stateful():
            if service.role == "database":
                _write_database_capture(scene, case, service.name, captured, moment, now[service.name])
        captured -= INTERVAL


def _write_database_capture(
    scene: Scene, case: CaseFolderWriter, database: str, captured: float, moment: float, level: ServiceLevels
) -> None:
    strength = scene.lasting(moment)
    known = [s for s in scene.world.statements if s.database == database]
    extra = sum(s.share * scene.slower.get((database, s.text), 0.0) for s in known) * strength
    new = [(text, rate, mean) for name, text, rate, mean in scene.new_statements if name == database]
    extra += sum(rate * mean for _, rate, mean in new) * strength / max(level.rps, 1e-9)
    # What single statements add is theirs alone; the rest of the database's time is shared by weight.
    common = max(0.2 * level.latency_ms, level.latency_ms - extra)
    for statement in known:
        mean = statement.weight * common + scene.slower.get((database, statement.text), 0.0) * strength
        _write_statement_row(
            scene, case, captured, database, statement.text, level.rps * statement.share, mean
        )
    if strength > 0:
        for text, rate, mean in new:
            _write_statement_row(scene, case, captured, database, text, rate * strength, mean)


def _write_statement_row(
    scene: Scene, case: CaseFolderWriter, captured: float, database: str, text: str, rate: float, mean: float
) -> None:
    calls = max(1, round(rate * INTERVAL * math.exp(scene.random.gauss(0, 0.04))))
    mean *= math.exp(scene.random.gauss(0, 0.06))
    sessions = calls * mean / INTERVAL / 1000
    during = captured - INTERVAL / 2 > scene.timing.onset
    waits = scene.statement_waits.get(text) or scene.statement_waits.get(database) if during else None
    case.add(
        "statements.jsonl",
        captured_at=format_utc(captured),
        database=database,
        statement=text,
        calls=calls,
        calls_per_sec=round_figure(calls / INTERVAL),
        mean_ms=round_figure(mean),
        total_ms=round_figure(calls * mean),
        load=round_figure(sessions),
        load_unit="average active sessions",
        waits={name: round_figure(share * sessions) for name, share in (waits or _WAITS).items()},
        rows=calls * (1 if text.startswith(("UPDATE", "INSERT")) else 4),
    )
