"""Queries on the call graph."""

from collections import defaultdict, deque
from collections.abc import Container, Iterable, Mapping, Sequence

from opsleuth.analysis.records import ServiceDependency


def callees_by_caller(topology: Sequence[ServiceDependency] | None) -> dict[str, set[str]]:
    """Direct callees per caller; a service that calls itself is not a dependency."""
    callees: dict[str, set[str]] = defaultdict(set)
    for edge in topology or ():
        if edge.caller != edge.callee:
            callees[edge.caller].add(edge.callee)
    return dict(callees)


def measure_call_distances(callees: Mapping[str, Iterable[str]], start: str) -> dict[str, int]:
    """How many calls away from `start` each service lies that it reaches, itself at 0."""
    found = {start: 0}
    queue = deque([start])
    while queue:
        service = queue.popleft()
        for callee in sorted(callees.get(service, ())):
            if callee not in found:
                found[callee] = found[service] + 1
                queue.append(callee)
    return found


def find_call_path(callees: Mapping[str, Iterable[str]], start: str, goal: str) -> list[str]:
    """A shortest chain of calls from `start` to `goal`, both included; empty if there is none."""
    reach = measure_call_distances(callees, start)
    if goal not in reach:
        return []
    chain = [goal]
    while chain[0] != start:
        distance = reach[chain[0]] - 1
        callers = (c for c in callees if reach.get(c) == distance and chain[0] in callees[c])
        chain.insert(0, min(callers))
    return chain


def find_nearest_known_callees(
    callees: Mapping[str, Iterable[str]], start: str, known: Container[str]
) -> list[str]:
    """The first services of `known` on every way down from `start`, sorted: looks through those that are not."""
    found: set[str] = set()
    passed = {start}
    queue = deque([start])
    while queue:
        for callee in callees.get(queue.popleft(), ()):
            if callee in known:
                found.add(callee)
            elif callee not in passed:
                passed.add(callee)
                queue.append(callee)
    return sorted(found - {start})


def find_unrelated_services(topology: Sequence[ServiceDependency] | None, service: str | None) -> set[str]:
    """Services of the topology that neither call `service` nor are called by it, at any distance.

    Empty if the topology does not hold `service`: then nothing is known about it.
    """
    callees = callees_by_caller(topology)
    everyone = set(callees).union(*callees.values())
    if service is None or service not in everyone:
        return set()
    callers: dict[str, set[str]] = defaultdict(set)
    for caller, called in callees.items():
        for callee in called:
            callers[callee].add(caller)
    return (
        everyone
        - set(measure_call_distances(callees, service))
        - set(measure_call_distances(callers, service))
    )
