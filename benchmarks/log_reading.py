"""Reading, time, level, template and counts per minute: lines a second and core, on a mixed log and on a file.

The mixed log has 300 statements of known origin, so that the groups can be held against them. Where Drain3 can be
imported (`pip install --no-deps drain3 jsonpickle cachetools`, for this alone), it sorts the same lines, unmasked, in
turns with ours.
Run: python benchmarks/log_reading.py [LINES] [FILE...]      (default 300,000 lines; `generate LINES` prints the log)
"""

import logging
import random
import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.util import find_spec
from os import getloadavg
from pathlib import Path
from tempfile import TemporaryDirectory

from opsleuth.analysis.line_numbers import LineNumbers
from opsleuth.analysis.log_templates import Masker
from opsleuth.analysis.records import LogLine
from opsleuth.analysis.template_counts import TemplateCounter
from opsleuth.tools.sources.log_formats.log_file import LogFile, ReadingRules

TEMPLATES = 300
START = datetime(2026, 11, 29, 13, tzinfo=UTC)
VERBS = [
    "accepted",
    "applied",
    "archived",
    "assigned",
    "blocked",
    "cached",
    "cancelled",
    "charged",
    "checked",
    "closed",
    "committed",
    "copied",
    "dropped",
    "expired",
    "fetched",
    "flushed",
]
THINGS = [
    "basket",
    "cart",
    "charge",
    "customer",
    "delivery",
    "invoice",
    "item",
    "ledger",
    "mailbox",
    "order",
    "page",
    "partition",
    "payment",
    "refund",
    "session",
    "shipment",
]
ENDS = (
    "in {ms} ms", "for user {user}", "after {n} retries", "from {ip}:{port}", "id={uuid}", "trace={hex}", "size={n} bytes", "by worker-{n}",
    "at {path}", "with status {status}", "queue depth={n} lag_ms={ms}", "token {hex} of {user}", "(attempt {n} of 5)", 'key "{hex}" in {ms}ms',
)  # fmt: skip
USERS = [
    f"{first}.{last}"
    for first in ("anna", "bo", "cem", "dora", "emil", "fay")
    for last in ("ames", "brandt", "cho", "diaz", "engel", "fox")
]
LOGGERS = [f"com.shop.{thing}.{thing.title()}Service" for thing in THINGS]


def templates(seed: int = 7) -> list[tuple[str, str, str]]:
    """(level, logger, message with places to fill) of each statement; no two have the same words."""
    dice, found = random.Random(seed), {}
    while len(found) < TEMPLATES:
        verb, thing, other = dice.choice(VERBS), dice.choice(THINGS), dice.choice(THINGS)
        message = f"{thing} {{n}} {verb} while {other} waits {' '.join(dice.sample(ENDS, 2))}"
        level = dice.choices(("INFO", "DEBUG", "WARN", "ERROR"), (70, 15, 10, 5))[0]
        found.setdefault((verb, thing, other), (level, dice.choice(LOGGERS), message))
    return list(found.values())


def generate(lines: int, seed: int = 11) -> Iterator[tuple[str, int]]:
    """Lines of several writers, with the number of the statement that wrote each; a few statements write most."""
    dice, known = random.Random(seed), templates()
    weights = [1 / (rank + 3) for rank in range(len(known))]
    chosen = dice.choices(range(len(known)), weights, k=lines)
    for number, which in enumerate(chosen):
        level, logger, message = known[which]
        moment = START + timedelta(milliseconds=13 * number)
        text = message.format(
            n=dice.randint(1, 99_999), ms=dice.randint(1, 4_000), user=dice.choice(USERS), port=dice.randint(1_024, 65_535),
            ip=f"10.{dice.randint(0, 255)}.{dice.randint(0, 255)}.{dice.randint(1, 254)}", uuid=_uuid(dice), hex=f"{dice.getrandbits(64):016x}",
            path=f"/srv/{dice.choice(THINGS)}/{dice.randint(1, 999)}", status=dice.choice((200, 200, 200, 404, 502)),
        )  # fmt: skip
        yield (
            f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03d} [exec-{number % 32}] {level:5} {logger} - {text}",
            which,
        )


def _uuid(dice: random.Random) -> str:
    text = f"{dice.getrandbits(128):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def records(path: Path) -> Iterator[LogLine]:
    file = LogFile(path, ReadingRules())
    with file.open() as raws:
        yield from file.records(raws)


def measured(name: str, lines: Iterable[LogLine], collector: TemplateCounter | LineNumbers) -> None:
    began, count = time.process_time(), 0
    for count, line in enumerate(lines, start=1):  # noqa: B007 - the last is how many there were
        collector.add(line)
    seconds = time.process_time() - began
    rows = len(collector.rows()) if isinstance(collector, TemplateCounter) else len(collector.series())
    what = "templates" if isinstance(collector, TemplateCounter) else "series"
    print(
        f"  {name}: {count / seconds:>9,.0f} lines a second and core ({count:,} lines, {seconds:.2f} s CPU, {rows} {what})"
    )


def grouping_accuracy(groups: Sequence[int], labels: Sequence[int]) -> float:
    """The share of lines whose group holds exactly the lines of their statement (Zhu et al., 2019)."""
    pairs = Counter(zip(groups, labels, strict=True))
    of_group: dict[int, set[int]] = defaultdict(set)
    of_label: dict[int, set[int]] = defaultdict(set)
    for group, label in pairs:
        of_group[group].add(label)
        of_label[label].add(group)
    right = sum(n for (g, label), n in pairs.items() if len(of_group[g]) == 1 and len(of_label[label]) == 1)
    return right / len(labels)


def sort_by_ours(messages: Sequence[str]) -> list[int]:
    counter = TemplateCounter()
    return [id(counter.add(LogLine(0.0, "", message)).template) for message in messages]


def sort_by_drain(messages: Sequence[str]) -> list[int]:
    settings = import_module("drain3.template_miner_config").TemplateMinerConfig()
    settings.profiling_enabled, settings.masking_instructions = False, []
    miner = import_module("drain3").TemplateMiner(config=settings)
    return [miner.add_log_message(message)["cluster_id"] for message in messages]


def compare_grouping(lines: int, rounds: int = 3) -> None:
    """Speed and accuracy of sorting messages alone, in turns, so that the machine's load falls on all."""
    with TemporaryDirectory() as made:
        path = Path(made) / "mixed.log"
        written = list(generate(lines))
        path.write_text("".join(f"{text}\n" for text, _ in written))
        messages, labels = [line.message for line in records(path)], [which for _, which in written]
    sorters = {"ours": sort_by_ours}
    if find_spec("drain3"):
        logging.disable(logging.CRITICAL)
        sorters["Drain3"] = sort_by_drain
    for _ in range(rounds):
        for name, sort in sorters.items():
            began = time.process_time()
            groups = sort(messages)
            rate = lines / (time.process_time() - began)
            print(
                f"  messages into groups, {name:6}: {rate:>9,.0f} lines a second and core"
                f" ({len(set(groups))} groups, accuracy {grouping_accuracy(groups, labels):.3f})"
            )


def report(path: Path) -> None:
    print(f"{path.name}, {path.stat().st_size / 1e6:.1f} MB; load of the machine {getloadavg()[0]:.1f}")
    began, count = time.process_time(), sum(1 for _ in records(path))
    seconds = time.process_time() - began
    print(f"  reading, time, level:             {count / seconds:>9,.0f} lines a second and core")
    measured("with templates, counts per minute", records(path), TemplateCounter())
    measured("with numbers as series           ", records(path), LineNumbers())
    masker, messages = Masker(), [line.message for line in records(path)]
    began = time.process_time()
    for message in messages:
        masker.mask(message)
    print(
        f"  masking alone:                    {len(messages) / (time.process_time() - began):>9,.0f} lines a second and core"
    )
    print(
        f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB (with all messages held for the last figure)"
    )


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] == ["generate"]:
        sys.stdout.writelines(f"{text}\n" for text, _ in generate(int(arguments[1])))
        return
    lines = int(arguments[0]) if arguments else 300_000
    with TemporaryDirectory() as made:
        path = Path(made) / "mixed.log"
        with path.open("w") as file:
            file.writelines(f"{text}\n" for text, _ in generate(lines))
        report(path)
    compare_grouping(lines)
    for name in arguments[1:]:
        report(Path(name))


if __name__ == "__main__":
    main()
