"""From what one run costs to what many need: a simulated day of arrivals, with storms, on a number of slots.

Prints how long runs wait for a slot, how many are at work at once, and what that asks of processors, database and
disk. The costs of a run are figures of `benchmarks/many.py`; give your own.

Run: python benchmarks/growth.py [--day 100000 --slots 1000 --seconds 20 --cpu 0.20 --transactions 190 --kilobytes 171]
"""

import argparse
import heapq
import json
import random
import sys
from collections.abc import Iterator

DAY = 86_400.0
STORMS, STORM_SHARE, STORM_SECONDS = 10, 0.1, 60.0
"""So many times a day, together so much of the day's runs come within a minute each."""
CONNECTIONS = 7
"""Of one worker at the most: one for its runs, one for its heartbeat, up to five for the queue."""
SPREAD = 0.4
"""Standard deviation of the logarithm of a run's seconds."""


def arrivals(day: int, rng: random.Random) -> Iterator[float]:
    """The moments of a day's arrivals, in order: twice as many at noon as at midnight, and storms."""
    calm, moments = round(day * (1 - STORM_SHARE)), []
    while len(moments) < calm:
        at = rng.uniform(0, DAY)
        if rng.random() < 0.75 - 0.25 * abs(at / DAY - 0.5) * 4 / 2:
            moments.append(at)
    for storm in range(STORMS):
        begin = (storm + 0.5) * DAY / STORMS
        moments += [begin + rng.uniform(0, STORM_SECONDS) for _ in range(round(day * STORM_SHARE / STORMS))]
    yield from sorted(moments)


def simulate(day: int, slots: int, seconds: float, rng: random.Random) -> tuple[list[float], int]:
    """Each run's wait for a slot, and the most that were at work at once."""
    free: list[float] = [0.0] * slots
    ends: list[float] = []
    waits, most = [], 0
    for at in arrivals(day, rng):
        begin = max(at, heapq.heappop(free))
        end = begin + seconds * rng.lognormvariate(0, SPREAD)
        heapq.heappush(free, end)
        waits.append(begin - at)
        while ends and ends[0] <= begin:
            heapq.heappop(ends)
        heapq.heappush(ends, end)
        most = max(most, len(ends))
    return waits, most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    for name, default in (("day", 100_000), ("slots", 1_000), ("slots-a-worker", 25)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, cost in (
        ("seconds", 20.0),
        ("cpu", 0.20),
        ("transactions", 190.0),
        ("kilobytes", 171.0),
        ("days", 30.0),
    ):
        parser.add_argument(f"--{name}", type=float, default=cost)
    given = parser.parse_args()
    waits, most = simulate(given.day, given.slots, given.seconds, random.Random(1))
    waits.sort()
    rate, peak = given.day / DAY, most / given.seconds
    workers = -(-given.slots // given.slots_a_worker)
    json.dump(
        {
            "runs a day": given.day,
            "slots": given.slots,
            "wait for a slot, seconds: median, 99 %, most": [round(waits[int(q * (len(waits) - 1))], 1) for q in (0.5, 0.99, 1)],
            "most at work at once": most,
            "cores, mean and peak": [round(rate * given.cpu, 1), round(peak * given.cpu, 1)],
            "transactions a second, mean and peak": [round(rate * given.transactions), round(peak * given.transactions)],
            "connections": workers * CONNECTIONS,
            "gigabytes kept": round(given.day * given.days * given.kilobytes / 1e6, 1),
        },
        sys.stdout,
        indent=1,
    )  # fmt: skip
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
