"""The customers of the lab: a steady number of requests a second to the orders API, bounded in number and in time.

python -m opsleuth.scenarios.lab.load --url URL --rate N --seconds S
"""

import http.client
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import click

WORKERS = 24
"""Requests under way at most; a customer who finds all taken goes away."""
READS = 0.6
PATIENCE = 4.0
"""Seconds after which a customer gives up."""


def send_request(url: str, method: str, path: str) -> None:
    """One request, whatever becomes of it: the service counts."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
    try:
        connection.request(method, path)
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        pass
    finally:
        connection.close()


def send_load(url: str, rate: float, seconds: float, customers: int) -> None:
    """`rate` requests a second, for `seconds`, so `rate * seconds` at most."""
    chance = random.Random(3)
    free = threading.BoundedSemaphore(WORKERS)
    end = time.monotonic() + seconds
    due = time.monotonic()

    def one(method: str, path: str) -> None:
        try:
            send_request(url, method, path)
        finally:
            free.release()

    with ThreadPoolExecutor(WORKERS) as workers:
        while (now := time.monotonic()) < end:
            due = max(due + 1.0 / rate, now)
            if free.acquire(blocking=False):
                method = "GET" if chance.random() < READS else "POST"
                workers.submit(one, method, f"/orders?customer={chance.randrange(customers)}")
            time.sleep(max(0.0, due - time.monotonic()))


@click.command()
@click.option("--url", required=True)
@click.option("--rate", type=float, required=True)
@click.option("--seconds", type=float, required=True)
@click.option("--customers", type=int, required=True)
def main(url: str, rate: float, seconds: float, customers: int) -> None:
    send_load(url, rate, seconds, customers)


if __name__ == "__main__":
    main()
