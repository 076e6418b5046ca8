"""Why a process was killed for lack of memory: its own limit, the whole host, the pressure in its slice, or its heap."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

LIMIT, CONTAINER, HOST, PRESSURE, HEAP = "limit", "container", "host", "pressure", "heap"

_SCOPES = tuple(
    (scope, re.compile(pattern, re.IGNORECASE))
    for scope, pattern in (
        (PRESSURE, r"systemd-oomd killed|\bkilled \S+ due to memory (?:pressure|used)\b"),
        (LIMIT, r"CONSTRAINT_MEMCG|memory cgroup out of memory|killed as a result of limit of|own memory limit"),
        (HOST, r"CONSTRAINT_NONE|\bglobal_oom\b|\bSystemOOM\b|\bsystem oom\b|(?<!cgroup )\bout of memory: kill(?:ed)? process"),
        (CONTAINER, r"\bOOMKilled\b"),
        (HEAP, r"OutOfMemoryError|\bheap (?:space|limit|out of memory)|heap exhausted"),
    )
)  # fmt: skip
_PROCESS = re.compile(
    r"\bkill(?:ed)? process \d+(?:,? ?\((?P<killed>[^)]{1,60})\))?|\btask=(?P<task>[^,\s]{1,60})|\bvictim process: (?P<victim>[^,\s]{1,60})",
    re.IGNORECASE,
)
_UNIT = re.compile(r"\bkilled \S*?(?P<unit>[\w@.\\:-]+)\.(?:service|scope) due to memory\b", re.IGNORECASE)
_LONGEST = 4000


class MemoryKill(NamedTuple):
    """`scope` is what ran out: limit, container, host, pressure or heap; `process` who was killed, empty where not named."""

    scope: str
    process: str = ""


def read_memory_kill(text: str) -> MemoryKill | None:
    """What the line says ran out, and whom it killed; None where it does not say."""
    text = text[:_LONGEST]
    scope = next((scope for scope, pattern in _SCOPES if pattern.search(text)), None)
    if scope is None:
        return None
    unit, process = find_killed_unit(text), _PROCESS.search(text)
    named = next(filter(None, process.groups()), "") if process else ""
    return MemoryKill(scope, unit or named)


def find_killed_unit(text: str) -> str:
    """`report` of systemd-oomd's line about `report.service`; empty for other lines."""
    found = _UNIT.search(text)
    return found["unit"].partition("@")[0] if found else ""


def choose_memory_kill(kills: Iterable[MemoryKill]) -> MemoryKill | None:
    """The scope that most lines name, with the process that they name most often; None without any.

    That a container was killed says least: the kernel's or the kubelet's word for what ran out goes before it.
    """
    counted = Counter(kills)
    scopes = Counter[str]()
    for kill, count in counted.items():
        scopes[kill.scope] += count
    if not scopes:
        return None
    scope = min(scopes, key=lambda name: (name in (CONTAINER, HEAP), -scopes[name], name))
    processes = Counter[str]()
    for kill, count in counted.items():
        if kill.scope == scope and kill.process:
            processes[kill.process] += count
    process = min(processes, key=lambda name: (-processes[name], name), default="")
    return MemoryKill(scope, process)


_WORDS = {
    LIMIT: "the limit of its control group was reached",
    HOST: "the whole host ran out of memory",
    PRESSURE: "systemd-oomd ended it",
    HEAP: "its heap was full",
}


def describe_memory_kill(kill: MemoryKill) -> str:
    """`the whole host ran out of memory, mysqld was killed`; empty for a container of which no more is known."""
    words = _WORDS.get(kill.scope, "")
    return (
        f"{words}, {kill.process} was killed" if words and kill.process and kill.scope != PRESSURE else words
    )
