"""A recorded incident whose sources write their times in different zones: the same instants, so the same incident."""

import gzip
import json
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

from opsleuth.state.json_types import JSON

OFFSETS: Mapping[str, timedelta] = {
    "incident.json": timedelta(hours=8),
    "logs.jsonl": timedelta(hours=5, minutes=30),
    "events.jsonl": timedelta(hours=-5),
    "changes.jsonl": timedelta(hours=9),
}
"""Where each table's clock hangs; metrics and spans stay in UTC."""

_TIMES = frozenset({"timestamp", "first_timestamp", "fired_at"})


def rewrite_time_zones(folder: Path) -> None:
    """Write the times of a case folder as its sources' own clocks show them, each with its offset."""
    for path in sorted(folder.iterdir()):
        offset = OFFSETS.get(path.name.removesuffix(".gz"))
        if offset is None:
            continue
        packed = path.suffix == ".gz"
        raw = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
        zone, text = timezone(offset), raw.decode()
        whole = path.name == "incident.json"
        documents = [text] if whole else text.splitlines()
        lines = [json.dumps(_convert_times(json.loads(d), zone), ensure_ascii=False) for d in documents]
        moved = ("\n".join(lines) + "\n").encode()
        path.write_bytes(gzip.compress(moved, mtime=0) if packed else moved)


def _convert_times(value: JSON, zone: timezone) -> JSON:
    """The document with every time in this zone."""
    if isinstance(value, dict):
        return {
            k: _convert_time(v, zone) if k in _TIMES and isinstance(v, str) else _convert_times(v, zone)
            for k, v in value.items()
        }
    return [_convert_times(item, zone) for item in value] if isinstance(value, list) else value


def _convert_time(text: str, zone: timezone) -> str:
    return datetime.fromisoformat(text).astimezone(zone).isoformat(timespec="milliseconds")
