"""Changes in three grades: generated releases among decoys, before and after the onset, with and without a diff."""

import random
from dataclasses import replace
from typing import NamedTuple

import pytest

from opsleuth.analysis.change_diffs import identify_change, is_idle_change, split_release
from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.analysis.records import (
    AlertFacts,
    GradedChange,
    LogLine,
    MetricSeries,
    Recording,
    ServiceChange,
    TimeRange,
)

ONSET = 3600.0
TIMES = [60.0 * place for place in range(90)]


class Culprit(NamedTuple):
    """A guilty diff, and the line that the failing service writes because of it."""

    diff: str
    line: str


CULPRITS = (
    Culprit(
        "--- a/svc/client.py\n+++ b/svc/client.py\n@@ -3,4 +3,4 @@\n-CALL_TIMEOUT = timedelta(seconds=8)\n+CALL_TIMEOUT = timedelta(seconds=1)\n",
        "upstream deadline exceeded after 1000 ms",
    ),
    Culprit(
        "@@ app/cart.ts @@\n-  if (cart === undefined) { return [] }\n-  return cart.items\n+  return cart.items\n",
        "TypeError: Cannot read properties of undefined (reading 'items')",
    ),
    Culprit(
        "@@ store/orders.rb @@\n-  orders.order(:id).limit(100)\n+  orders.order(:id)\n",
        "slow query: SELECT orders took 5400 ms",
    ),
    Culprit(
        "@@ deploy/values.yaml @@\n-  max_pool_size: 60\n+  max_pool_size: 6\n",
        "connection pool exhausted, request queued",
    ),
    Culprit(
        '@@ pkg/event/event.go @@\n-\tKind string `json:"kind"`\n+\tKind string `json:"eventKind"`\n',
        "cannot decode event: missing field 'kind'",
    ),
    Culprit(
        "--- a/svc/price.py\n+++ b/svc/price.py\n@@ -40,3 +40,3 @@\n-    rate = rates.get(code, 1)\n+    rate = rates[code]\n",
        "Traceback (most recent call last):\n  File \"/srv/svc/price.py\", line 41, in total\n    rate = rates[code]\nKeyError: 'NOK'",
    ),
)
DECOYS = (
    ("docs: describe the flags", "--- a/docs/flags.md\n+++ b/docs/flags.md\n@@ -1,1 +1,1 @@\n-old\n+new\n"),
    ("test: more cases for retry", "@@ pkg/retry/backoff_test.go @@\n-\td := 1\n+\td := 2\n"),
    (
        "chore: structured access log",
        '@@ svc/log.go @@\n-\tlog.Printf("%s", path)\n+\tlogger.Info("request", "path", path)\n',
    ),
    ("chore: bump go.mod", "@@ go.mod @@\n-\texample.org/lib v1.2.0\n+\texample.org/lib v1.2.1\n"),
    (
        "style: wider cards",
        "@@ web/static/card.css @@\n-.card { padding: 8px; }\n+.card { padding: 12px; }\n",
    ),
    (
        "chore: a little more patience",
        "@@ svc/net.go @@\n-\ttimeout = 3 * time.Second\n+\ttimeout = 5 * time.Second\n",
    ),
    (
        "fix: rounding",
        "@@ svc/tax.go @@\n-\treturn math.Round(net * rate)\n+\treturn math.Round(net*rate*100) / 100\n",
    ),
)


def change(
    time: float, summary: str, diff: str | None, *, service: str = "shop", kind: str = "deploy"
) -> ServiceChange:
    number = abs(hash((time, summary))) % 10**8
    return ServiceChange(time, service, kind, summary, diff=diff, extra={"commit": f"{number:08d}"})


def record(line: str, changes: list[ServiceChange]) -> Recording:
    """A service that fails from the onset on, in metrics and with `line` in its log."""
    failing = [0.001] * 60 + [0.4] * 30
    lines = [LogLine(t, "shop", "order accepted", "info") for t in TIMES]
    lines += [LogLine(ONSET + 10.0 * i, "shop", line, "error") for i in range(60)]
    return Recording(
        AlertFacts("error ratio of shop above 5 %", "shop", "error_ratio", onset=ONSET, fired=ONSET + 180),
        TimeRange(0.0, 5400.0),
        metrics=[
            MetricSeries("shop", "error_ratio", "", TIMES, failing),
            MetricSeries("shop", "requests_per_sec", "", TIMES, [50.0] * 90),
        ],
        logs=lines,
        changes=changes,
    )


def grade(recording: Recording) -> list[GradedChange]:
    return list(rank_findings(recording, run_detectors(recording)).changes)


@pytest.mark.parametrize("culprit", CULPRITS, ids=lambda culprit: culprit.line[:24])
@pytest.mark.parametrize("seed", range(3))
def test_the_change_whose_diff_meets_what_fails_is_the_cause_though_others_came_later(
    culprit: Culprit, seed: int
) -> None:
    rng = random.Random(seed)
    guilty = change(ONSET - rng.uniform(300, 1500), "refactor: tidy", culprit.diff)
    decoys = [change(ONSET - rng.uniform(20, 2000), *decoy) for decoy in DECOYS]
    found = grade(record(culprit.line, [guilty, *decoys]))
    assert [(g.grade, g.change) for g in found] == [("cause", guilty)]


@pytest.mark.parametrize("culprit", CULPRITS, ids=lambda culprit: culprit.line[:24])
def test_innocent_changes_are_not_named_whatever_fails(culprit: Culprit) -> None:
    decoys = [change(ONSET - 60.0 * i, *decoy) for i, decoy in enumerate(DECOYS, 1)]
    assert grade(record(culprit.line, decoys)) == []


@pytest.mark.parametrize("late", [61.0, 120.0, 600.0])
@pytest.mark.parametrize("culprit", CULPRITS[:3], ids=lambda culprit: culprit.line[:24])
def test_no_cause_comes_after_its_effect(culprit: Culprit, late: float) -> None:
    assert grade(record(culprit.line, [change(ONSET + late, "v2", culprit.diff)])) == []


def fall_short(series: MetricSeries, time: float) -> float:
    """The value at `time`; at the onset a fifth of the way from the usual value to that of the incident."""
    values = dict(zip(series.times, series.values, strict=True))
    usual, incident = values[ONSET - 60.0], values[ONSET + 60.0]
    return usual + 0.2 * (incident - usual) if time == ONSET else values[time]


def test_a_change_within_one_sample_after_the_onset_says_after() -> None:
    late = change(ONSET + 30.0, "v2", None)
    recording = record("it broke", [late])
    began = [replace(series, values=[fall_short(series, t) for t in series.times]) for series in recording.metrics or ()]  # fmt: skip
    recording = replace(recording, metrics=began)
    texts = [f.text for f in run_detectors(recording) if f.signal == "changes"]
    assert texts == ["deploy of shop 30 s after the onset: v2"]


def test_without_a_diff_a_change_only_coincides() -> None:
    (found,) = grade(record("it broke", [change(ONSET - 120.0, "shop v2", None)]))
    assert (found.grade, "no diff" in found.why) == ("coincides", True)


@pytest.mark.parametrize("host", ["api.bank.example.com", "s3.eu-west-1.amazonaws.com", "hooks.chat.io"])
def test_where_a_provider_fails_no_release_is_named(host: str) -> None:
    line = f"POST https://{host}/v1/pay returned 503 after 3 retries, timed out"
    changes = [change(ONSET - 90.0, "shop v2", None), change(ONSET - 200.0, *DECOYS[5])]
    recording = record(line, changes)
    ranking = rank_findings(recording, run_detectors(recording))
    assert (list(ranking.changes), ranking.suspects[0].kind) == ([], "dependency")


def test_the_commit_in_a_release_is_named_with_its_author_and_place() -> None:
    diff = (
        "commit 0aa11bb (dana) use the shared table\n"
        + CULPRITS[5].diff
        + "commit 77de001 (bob) log level\n--- a/svc/log.py\n+++ b/svc/log.py\n@@ -1,1 +1,1 @@\n-level = 'info'\n+level = 'debug'\n"
    )
    release = change(ONSET - 100.0, "shop 2.0: 2 commits", diff)
    (found,) = grade(record(CULPRITS[5].line, [release]))
    assert (identify_change(found.change), found.change.author, found.place) == (
        "0aa11bb",
        "dana",
        "svc/price.py:41",
    )
    assert len(split_release(release)) == 2


@pytest.mark.parametrize("place", range(5))
def test_what_nobody_runs_is_idle(place: int) -> None:
    summary, diff = DECOYS[place]
    assert is_idle_change(change(0.0, summary, diff)) == (place != 3)


def test_the_edge_of_a_shallow_history_is_no_suspect() -> None:
    whole = change(ONSET - 60.0, "v2", CULPRITS[1].diff)
    edge = replace(whole, extra={"commit": "0123abc", "boundary": True})
    assert grade(record(CULPRITS[1].line, [edge])) == []
