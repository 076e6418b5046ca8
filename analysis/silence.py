"""Who does not answer: a callee that no request reaches any more while its callers go on asking and fail.

A service that fell silent because its caller no longer asks is a victim. One whose callers still work, still ask,
and fail, is where the path breaks.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from opsleuth.analysis import message_meaning
from opsleuth.analysis.fault_kinds import SYMPTOMS
from opsleuth.analysis.fault_phrases import ACTS
from opsleuth.analysis.metric_roles import find_metric_role
from opsleuth.analysis.number_format import format_number
from opsleuth.analysis.object_owners import collect_object_owners
from opsleuth.analysis.onset import assumed_onset_of
from opsleuth.analysis.records import Finding, MetricSeries, Recording
from opsleuth.analysis.robust_statistics import typical_step
from opsleuth.analysis.topology import callees_by_caller

# A twentieth of the usual requests: what still comes is health checks and left-overs.
SILENT_SHARE = 0.05
# A caller fails when so much larger a share of its requests fails than usual.
FAILING_SHARE = 0.02
# Samples that have a level of their own.
ENOUGH = 4
# Steps without a sample after which a series has ended.
GAP_STEPS = 3.0
# Words of a caller that report a path that leads nowhere, and the kind that they mean.
_PATH_WORDS: Mapping[str, str] = {
    "etimedout": "network_loss",
    "timed out": "network_loss",
    "i/o timeout": "network_loss",
    "ehostunreach": "network_loss",
    "no route to host": "network_loss",
    "enetunreach": "network_loss",
    "econnrefused": "dependency",
    "connection refused": "dependency",
    "econnreset": "network_loss",
    "connection reset": "network_loss",
    "connection termination": "network_loss",
    "upstream connect error": "network_loss",
    "no healthy upstream": "dependency",
    "deadline": "network_loss",
    "unavailable": "dependency",
}
# What a caller complains of that is its own affair: then its callees are silent because it does not get to asking.
_OWN_AFFAIR = frozenset(
    {"dns", "permission", "config", "quota", "certificate", "out_of_memory", "storage_full"}
)


@dataclass(frozen=True, slots=True)
class Silence:
    """A service that no longer takes requests: how many it had, since when, by which metric ("" for a full stop)."""

    service: str
    usual: float
    since: float
    metric: str


def find_silence(recording: Recording) -> list[Finding]:
    """A finding for each service at which the path of still asking, failing callers breaks."""
    silent = silent_services(recording)
    if not silent or not recording.topology:
        return []
    failing = failing_services(recording)
    complaints = _collect_complaints(recording)
    callees = callees_by_caller(recording.topology)
    blamed: dict[str, set[str]] = defaultdict(set)
    for caller in sorted(failing - silent.keys()):
        quiet = [name for name in sorted(callees.get(caller, ())) if name in silent]
        loud = [name for name in callees.get(caller, ()) if name in failing and name not in silent]
        kinds = {kind for kind, _ in complaints.get(caller, ())}
        if quiet and not loud and not kinds & _OWN_AFFAIR:
            for name in _select_named_callees(quiet, recording, complaints.get(caller, ())):
                blamed[name].add(caller)
    return [
        _report_silence(silent[name], sorted(callers), _choose_kind(callers, complaints))
        for name, callers in sorted(blamed.items())
    ]


def silent_services(recording: Recording) -> dict[str, Silence]:
    """Services whose requests fell to nearly none at the onset, or that stopped giving any sign of life."""
    onset = assumed_onset_of(recording)
    found: dict[str, Silence] = {}
    by_service: dict[str, list[MetricSeries]] = defaultdict(list)
    for series in recording.metrics or ():
        by_service[series.service].append(series)
    for service, group in by_service.items():
        asked = [s for s in group if (role := find_metric_role(s.metric, s.unit)) and role.name == "requests"]
        if asked and (fell := _find_fall(asked, onset)):
            found[service] = fell
        elif stopped := _find_stop(service, group, recording):
            found[service] = stopped
    return found


def _find_fall(series: Sequence[MetricSeries], onset: float) -> Silence | None:
    """The largest request series of a service, if all of its request series fell."""
    levels = []
    for one in series:
        before = [v for t, v in zip(one.times, one.values, strict=True) if t < onset]
        after = [v for t, v in zip(one.times, one.values, strict=True) if t >= onset]
        # The alert may be a few samples late: the last three quarters tell.
        after = after[len(after) // 4 :]
        if len(before) < ENOUGH or len(after) < ENOUGH:
            return None
        levels.append((median(before), median(after), one.metric))
    usual, now, metric = max(levels)
    if usual <= 0 or now > SILENT_SHARE * usual or any(n > SILENT_SHARE * u for u, n, _ in levels if u > 0):
        return None
    return Silence(series[0].service, usual, onset, metric)


def _find_stop(service: str, group: Sequence[MetricSeries], recording: Recording) -> Silence | None:
    """A service of which every series, and every log line where it wrote any, ends while others go on.

    One whose lines go on is no longer scraped, which is not a fault of its own.
    """
    series = [s for s in recording.metrics or () if s.times]
    own = [s for s in group if s.times]
    if not own or len(own) == len(series):
        return None
    step = max(typical_step(s.times) for s in own)
    end = max(s.times[-1] for s in own)
    others = max(s.times[-1] for s in series if s.service != service)
    wrote = [line.time for line in recording.logs or () if line.service == service and line.time is not None]
    if others - end <= GAP_STEPS * step or (wrote and max(wrote) > end + GAP_STEPS * step):
        return None
    if min(len(s.times) for s in own) < ENOUGH or end < recording.window.start:
        return None
    return Silence(service, 0.0, end, "")


def failing_services(recording: Recording) -> set[str]:
    """Services of whose requests a noticeably larger share fails after the onset than before."""
    onset = assumed_onset_of(recording)
    failing = set()
    for series in recording.metrics or ():
        role = find_metric_role(series.metric, series.unit)
        if role is None or role.name not in {"failures", "success"}:
            continue
        before = [v * role.scale for t, v in zip(series.times, series.values, strict=True) if t < onset]
        after = [v * role.scale for t, v in zip(series.times, series.values, strict=True) if t >= onset]
        if len(before) < ENOUGH or len(after) < ENOUGH:
            continue
        worse = median(after) - median(before)
        if role.name == "success":
            worse = -worse
        if worse > (FAILING_SHARE if role.share else max(1.0, median(before))):
            failing.add(series.service)
    return failing


def _collect_complaints(recording: Recording) -> dict[str, list[tuple[str, str]]]:
    """Kind and words of what each service newly complains of, after the onset."""
    onset = assumed_onset_of(recording)
    usual = {(line.service, _mask_digits(line.message)) for line in recording.logs_baseline or ()}
    said: dict[str, dict[tuple[str, str], None]] = defaultdict(dict)
    for line in recording.logs or ():
        if line.level not in {"error", "fatal", "critical", "warn", "warning", "ERROR", "WARN", None}:
            continue
        shape = _mask_digits(line.message)
        if line.time is not None and line.time < onset - 60.0:
            usual.add((line.service, shape))
        elif (line.service, shape) not in usual and (
            meaning := message_meaning.read_message_meaning(line.message)
        ):
            said[line.service][meaning.kind, line.message.lower()[:400]] = None
    return {service: list(words) for service, words in said.items()}


def _mask_digits(message: str) -> str:
    return "".join("0" if c.isdigit() else c for c in message[:80])


def _select_named_callees(
    quiet: Sequence[str], recording: Recording, complaints: Iterable[tuple[str, str]]
) -> Sequence[str]:
    """Of several silent callees those that the caller's complaints name, by name or address; else all."""
    known = collect_object_owners(recording)
    named = {
        name
        for _, text in complaints
        for target in message_meaning.find_named_hosts(text)
        for name in (target, target.partition(".")[0])
        if name in quiet and name in known.names
    }
    return sorted(named) or quiet


def _choose_kind(callers: Iterable[str], complaints: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    kinds = [
        kind
        for caller in callers
        for _, text in complaints.get(caller, ())
        for words, kind in _PATH_WORDS.items()
        if words in text
    ]
    return "network_loss" if "network_loss" in kinds else "dependency"


def _report_silence(silence: Silence, callers: Sequence[str], kind: str) -> Finding:
    who = " and ".join(callers[:3])
    if silence.metric:
        text = f"{silence.metric} of {silence.service} fell from {format_number(silence.usual)} to next to nothing at the onset"
    else:
        text = f"{silence.service} shows no sign of life any more: its metrics and logs have stopped"
    return Finding(
        detector="silence",
        signal="metrics",
        service=silence.service,
        kind=kind,
        size=2.0 * ACTS if kind in SYMPTOMS else ACTS,
        text=f"{text}, while its caller {who} goes on and fails."
        if len(callers) == 1
        else f"{text}, while its callers {who} go on and fail.",
        figures={"usual": silence.usual, "callers": list(callers)},
        onset=silence.since,
        metric=silence.metric or None,
    )
