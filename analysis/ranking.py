"""From the findings of all detectors to ranked suspects, causes before victims, with the reasons in words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile

from opsleuth.analysis import (
    alert_measures,
    change_grades,
    changes,
    demand_surge,
    entry_success_rate,
    error_lines,
    failing_spans_share,
    harm_attribution,
    health_verdict,
    imbalance,
    log_levels,
    log_messages,
    new_statements,
    platform_reports,
    resource_usage,
    silence,
    sql_statements,
    trace_log_findings,
    unanswered,
)
from opsleuth.analysis.cluster import detector as cluster
from opsleuth.analysis.cluster.hosting import blame_nodes, with_node_lines, with_nodes
from opsleuth.analysis.cluster.memory import with_memory
from opsleuth.analysis.cluster.symptom_reasons import explain_symptoms
from opsleuth.analysis.faint_signs import FAINT, doubt_faint_signs
from opsleuth.analysis.first_lines import add_first_times
from opsleuth.analysis.ongoing_trouble import find_earlier_troubles
from opsleuth.analysis.onset import assumed_onset_of, with_detected_onset
from opsleuth.analysis.outsiders import demote_outsiders
from opsleuth.analysis.records import Finding, GradedChange, Ranking, Recording, Suspect
from opsleuth.analysis.refusals import attribute_refusals
from opsleuth.analysis.reported_trouble import find_failing_throughout, split_later_findings
from opsleuth.analysis.shared_dns import blame_missing_names, blame_resolver
from opsleuth.analysis.suspects import (
    demote_explained_suspects,
    demote_redundant_changes,
    demote_unrelated_suspects,
    suspects_from_findings,
)
from opsleuth.analysis.topology import callees_by_caller, find_call_path

Detector = Callable[[Recording], list[Finding]]

DETECTORS: tuple[Detector, ...] = (
    harm_attribution.find_service_harm,
    resource_usage.find_resource_shifts,
    demand_surge.find_demand_surges,
    health_verdict.find_unchanged_alert_metrics,
    alert_measures.find_alert_measure_moves,
    platform_reports.find_reported_troubles,
    cluster.find_cluster_deviations,
    silence.find_silence,
    unanswered.find_unanswered_calls,
    imbalance.find_imbalance,
    log_messages.find_fault_messages,
    log_levels.find_log_levels,
    error_lines.find_new_error_lines,
    trace_log_findings.find_lost_time_and_steps,
    failing_spans_share.find_failing_span_shares,
    entry_success_rate.find_entry_failures,
    sql_statements.find_heavy_statements,
    changes.find_recent_changes,
)

# What users do not feel counts half.
UNFELT_WEIGHT = 0.5
# A second cause stands beside the first only if it is nearly as strong, and itself more likely than not.
SECOND_CAUSE = 0.8
MOST_CHANGES = 3
MOST_OTHERS = 2
MOST_LATER = 3
# Under this nothing points at anyone: it is little more than half of what a just noticeable symptom amounts to (0.35).
BELIEVABLE = 0.2


def run_detectors(recording: Recording) -> list[Finding]:
    """What every detector says about the recording, strongest first inside each detector."""
    started = with_detected_onset(with_node_lines(with_memory(recording)))
    found = add_first_times(started, [finding for find in DETECTORS for finding in find(started)])
    return [*found, *find_failing_throughout(recording)]


def rank_findings(recording: Recording, findings: Sequence[Finding]) -> Ranking:
    """Suspects by how strongly the findings point at them, and what that means for the incident as a whole."""
    recording = with_memory(recording)
    findings, later = split_later_findings(recording, findings)
    findings = new_statements.attribute_new_statements(recording, _attribute_findings(recording, findings))
    recording = with_nodes(recording, findings)
    started = with_detected_onset(recording)
    findings = doubt_faint_signs(started, findings)
    # Slowness somewhere inside explains little where users measurably wait no longer than usual.
    discounts = {"latency": UNFELT_WEIGHT} if harm_attribution.users_wait(started) is False else {}
    seen = _rank_suspects(recording, [f for f in findings if f.signal != "changes"], discounts)
    graded = change_grades.grade_changes(started, findings, seen or _suspect_plain_signs(findings))
    findings = changes.weigh_changes_by_support(changes.keep_suspected_changes(started, findings, graded))
    suspects = demote_redundant_changes(_rank_suspects(recording, findings, discounts), SECOND_CAUSE)
    suspects = [_correct_kind(started, suspect, graded) for suspect in suspects]
    believable = [suspect for suspect in suspects if suspect.score >= BELIEVABLE]
    if not believable and (moved := _suspect_plain_signs(findings)):
        suspects = believable = [*moved, *suspects]
    causes = _count_leading_causes(believable)
    return Ranking(
        verdict=health_verdict.choose_verdict(believable, findings),
        suspects=suspects,
        causes=causes,
        propagation=_trace_propagation(recording, believable[:causes], findings),
        notes=_explain_ranking(recording, suspects, causes, findings, later),
        changes=[g for g in graded if g.grade != "innocent"][:MOST_CHANGES],
        also_moved=_find_other_moves(started, believable[:1]),
        later=later[:MOST_LATER],
        earlier=find_earlier_troubles(recording, started.alert.onset),
    )


def _attribute_findings(recording: Recording, findings: Sequence[Finding]) -> list[Finding]:
    """The findings with what servers, resolvers and nodes do to others at them instead of at those who report it."""
    started = with_detected_onset(with_node_lines(recording))
    found = blame_missing_names(started, blame_resolver(started, attribute_refusals(started, findings)))
    return explain_symptoms(recording, blame_nodes(cluster.weigh_latent(recording, found)))


def _correct_kind(recording: Recording, suspect: Suspect, graded: Sequence[GradedChange]) -> Suspect:
    """The suspect, its kind judged by what is known of its surroundings.

    Whoever fails because a provider does has a dependency that does not answer, and no exception of its own; a wait
    between two services that a release of one of them brought is not the network's fault.
    """
    onset = assumed_onset_of(recording)
    if suspect.kind in _OF_DEPENDENCY and change_grades.names_outside_host(recording, onset, suspect.service):
        return replace(suspect, kind="dependency")
    guilty = next((g.change for g in graded if g.grade == "cause"), None)
    if guilty is not None and suspect.kind in _OF_NETWORK and guilty.service == suspect.service:
        return replace(suspect, kind=changes.FAULT_KIND_BY_CHANGE.get(guilty.kind, "deploy"))
    return suspect


_OF_DEPENDENCY = frozenset({"exception", "errors"})
_OF_NETWORK = frozenset({"network_delay", "network_loss"})


def _find_other_moves(recording: Recording, suspects: Sequence[Suspect]) -> list[Finding]:
    """What else moved on the first suspect than its findings say."""
    return [
        finding
        for suspect in suspects
        for finding in alert_measures.find_other_moves(
            recording, suspect.service, {f.metric for f in suspect.findings if f.metric}
        )
    ][:MOST_OTHERS]


def _rank_suspects(
    recording: Recording, findings: Sequence[Finding], discounts: Mapping[str, float]
) -> list[Suspect]:
    suspects = suspects_from_findings(findings, discounts)
    related = demote_outsiders(recording, demote_unrelated_suspects(recording, suspects))
    return demote_explained_suspects(recording, related)


def _count_leading_causes(suspects: Sequence[Suspect]) -> int:
    top = suspects[0].score if suspects else 0.0
    return len(list(takewhile(lambda s: s.explained_by is None and s.score >= SECOND_CAUSE * top, suspects)))


def _suspect_plain_signs(findings: Sequence[Finding]) -> list[Suspect]:
    """Who logs new errors, else the service of what the alert is about: where to look while nothing else is to blame.

    Error lines alone accuse nobody where what the alert is about is as usual: some are written every day.
    """
    calm = any(finding.direction == "healthy" for finding in findings)
    for detector in (alert_measures.DETECTOR,) if calm else (error_lines.DETECTOR, alert_measures.DETECTOR):
        signs = [replace(f, direction="cause") for f in findings if f.detector == detector and f.size > 0]
        if found := suspects_from_findings(signs, {}):
            return found[:1]
    return []


def _trace_propagation(
    recording: Recording, causes: Sequence[Suspect], findings: Sequence[Finding]
) -> list[tuple[str, str]]:
    """The call paths from the alerting service to each cause, from the cause outwards."""
    touched = {finding.service for finding in findings if finding.direction != "healthy"}
    pairs: dict[tuple[str, str], None] = {}
    for cause in causes:
        steps = find_call_path(
            callees_by_caller(recording.topology), recording.alert.service or "", cause.service
        )
        suffering = [s for s in steps if s in touched or s in (recording.alert.service, cause.service)]
        for victim, source in reversed(list(pairwise(suffering))):
            pairs[source, victim] = None
    return list(pairs)


def _explain_ranking(
    recording: Recording,
    suspects: Sequence[Suspect],
    causes: int,
    findings: Sequence[Finding],
    later: Sequence[Finding],
) -> list[str]:
    notes = [f"{s.service} ({s.kind}): {s.findings[0].text}" for s in suspects[:causes]]
    notes += [
        f"{s.service} is explained by {s.explained_by}."
        for s in suspects
        if s.explained_by not in (None, s.service)
    ]
    notes += [f"{f.text}." for f in later[:MOST_LATER]]
    notes += [f.text for f in findings if f.direction == "healthy"]
    if not suspects:
        notes += [f.text for f in findings if f.detector == alert_measures.DETECTOR or f.direction == FAINT]
    missing = _list_missing_sources(recording)
    return [*notes, f"Not available: {', '.join(missing)}."] if missing else notes


def _list_missing_sources(recording: Recording) -> list[str]:
    sources: Mapping[str, bool] = {
        "metrics": recording.metrics is None,
        "logs": recording.logs is None and recording.patterns is None,
        "traces": recording.spans is None and recording.span_stats is None,
        "topology": recording.topology is None,
        "changes": recording.changes is None,
        "events": recording.events is None,
        "objects": recording.objects is None,
        "statements": recording.statements is None,
    }
    return [name for name, absent in sources.items() if absent]
