"""What a run starts with: its question, window, limits and sources, from what the operator asked for."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Self

from pydantic import ValidationError

from opsleuth.alerts.documents import alert_fields_from_document, declared_calls
from opsleuth.alerts.labels import behind_exporter, is_exporter, targets_in, workloads_in
from opsleuth.analysis.topology import callees_by_caller
from opsleuth.configuration.config_file import format_validation_errors
from opsleuth.configuration.secret_references import Vault
from opsleuth.graph.lifecycle.limit_defaults import default_limits
from opsleuth.graph.lifecycle.unknown_services import describe_absent_services, find_absent_services
from opsleuth.questions.incident_window import ZonelessTimeError, window_from_question
from opsleuth.questions.mentioned_services import find_mentioned_services
from opsleuth.state.base import to_json
from opsleuth.state.budget import Budget, RunLimits
from opsleuth.state.clock import Clock
from opsleuth.state.errors import ConfigError, UsageError
from opsleuth.state.investigation import Alert, Demand, Investigation, Window
from opsleuth.state.limit_caps import LimitCaps
from opsleuth.state.local_times import LocalTimes
from opsleuth.tools.sources.case_source import CaseSource
from opsleuth.tools.sources.incident_file import NotACaseError, RecordedIncident
from opsleuth.tools.sources.open_sources import open_live_sources
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.sources.targets import names_without_target, separate_by_target
from opsleuth.verification.question_demands import parse_question_demands

BEFORE_ALERT = timedelta(minutes=30)
AFTER_ALERT = timedelta(minutes=5)
"""Without a window of its own, an alert is looked at from half an hour before it to a little after."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What every attempt of a run needs to know; stored with the run, so that resume needs no flag again.

    `model` holds the fields of `ModelSettings`, None where no model is configured; never a key.
    """

    case: str | None = None
    planner: str = "auto"
    read_only: bool = False
    environment: str | None = None
    sources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Configured sources by name, without secrets; a case stands alone."""
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    services: tuple[str, ...] = ()
    """Names that the sources knew when the run began."""
    model: Mapping[str, Any] | None = None
    platform: Mapping[str, Any] | None = None
    policy: str | None = None
    added_policies: tuple[str, ...] = ()
    """Policy files that later attempts were given as well: their rules only tighten, and they declare no tools."""
    replay: bool = False
    """Whether an attempt replayed a recording in place of the world; it stays, as its results do."""
    rules: Sequence[Mapping[str, Any]] | None = None
    """The rules that held when the run began; None until then, and in runs of versions that did not keep them."""
    caps: Mapping[str, Any] | None = None
    """Upper bounds of the run's limits, by name of `LimitCaps`; None for a run that no service took in."""

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """The settings out of the run's row; keys of other versions are passed over."""
        return cls(**{k: v for k, v in stored.items() if k in cls.__dataclass_fields__})

    def to_json(self) -> dict[str, Any]:
        """The fields by name, not copied: thousands of runs are stored with the same ones."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRequest:
    """A new investigation as the operator asked for it. `limits` holds overrides by name of `Limits`.

    `demands` are asked of the answer besides those that the question makes in its own words.
    """

    run: str
    question: str | None = None
    alert: Mapping[str, Any] | None = None
    since: datetime | None = None
    until: datetime | None = None
    name: str | None = None
    project: str | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    demands: tuple[Demand, ...] = ()
    settings: RunSettings = field(default_factory=RunSettings)
    local: LocalTimes | None = None
    """How times in the question that name no zone are read; None: they are refused. Never stored."""


@dataclass(frozen=True, slots=True)
class OpenedSources:
    """The sources of a run, and what the case itself says of the incident, if there is one."""

    sources: RunSources
    case: CaseSource | None = None
    vault: Vault = field(default_factory=Vault)


def open_sources(settings: RunSettings) -> OpenedSources:
    """The case alone, or the configured sources. Raises ConfigError without one, and for a folder that is not a case."""
    if settings.case is None:
        if not settings.sources:
            raise ConfigError(
                "there is neither a case nor a configured source: give --case DIR, or configure one (opsleuth init)"
            )
        vault = Vault()
        return OpenedSources(
            RunSources(separate_by_target(open_live_sources(settings.sources, vault))), vault=vault
        )
    try:
        case = CaseSource.open(settings.case)
    except NotACaseError as error:
        raise ConfigError(str(error)) from None
    return OpenedSources(RunSources([case]), case)


def first_state(request: StartRequest, opened: OpenedSources, clock: Clock) -> Investigation:
    """The state before the first node. Raises UsageError for an alert, a window or a limit that cannot be."""
    incident = opened.case.incident if opened.case else None
    calls = _known_calls(request.settings, opened)
    told = (
        alert_fields_from_document(request.alert, calls, clock.now(), request.question or "")
        if request.alert
        else None
    )
    alert = _validate_alert(told) if told else incident.alert if incident else None
    asked = request.question or (_asked_in(incident) if incident else "")
    question = asked or (alert.text if alert else "")
    if not question:
        raise ConfigError(
            "nothing was asked: give a question, an alert (--alert FILE) or a case (--case DIR)"
        )
    known = _known_service_names(opened.sources, request.settings)
    alert, unresolved = _locate_alert_service(question, alert, known)
    absent = find_absent_services(request.question, alert if request.alert else None, known, opened.case)
    try:
        return Investigation(
            question=question,
            from_alert=not asked,
            alert=alert,
            unresolved=describe_absent_services(absent, known) if absent else unresolved,
            absent=absent,
            window=_choose_window(request, opened, alert, clock.now()),
            checklist=parse_question_demands(asked, tuple(known)),
            read_only=request.settings.read_only,
            budget=Budget(limits=_choose_limits(request)),
        )
    except ValidationError as error:
        raise UsageError(
            "; ".join(
                ": ".join(
                    filter(
                        None, (str(e["loc"][0]) if e["loc"] else "", e["msg"].removeprefix("Value error, "))
                    )
                )
                for e in error.errors(include_input=False)
            )
        ) from None


def _choose_limits(request: StartRequest) -> RunLimits:
    """The limits asked for, the operator's where none are, and never more than those."""
    settings = request.settings
    usual = default_limits(settings.planner, settings.model)
    caps = LimitCaps.model_validate(settings.caps or {})
    return caps.cut_limits(RunLimits.model_validate(to_json(usual) | caps.given | dict(request.limits)))


def _asked_in(incident: RecordedIncident) -> str:
    """The case's own question; empty where it is only the text of its alert."""
    return "" if incident.alert and incident.alert.text == incident.question else incident.question


def with_meant_service(state: Investigation, service: str) -> Investigation:
    """The state once a person has said which service is meant."""
    known = to_json(state.alert) if state.alert else {"text": state.question}
    return state.changed(alert=Alert.model_validate(known | {"service": service}), unresolved="", absent=())


def _known_calls(settings: RunSettings, opened: OpenedSources) -> Mapping[str, Collection[str]]:
    """Whom each service calls, as far as that is known before anything is asked."""
    if opened.case is None:
        return declared_calls(settings.sources)
    return callees_by_caller(opened.case.recording({"topology"}).topology)


def _known_service_names(sources: RunSources, settings: RunSettings) -> Mapping[str, tuple[str, ...]]:
    """Every service that the sources or the configuration name, with what people call it."""
    plain = names_without_target(sources.services, sources.by_name.values())
    configured = (
        set() if settings.case else settings.aliases.keys() - {n for names in plain.values() for n in names}
    )
    known = {name: aliases_of(name, settings) for name in sources.services | configured}
    for name, names in plain.items():
        known[name] += tuple(word for n in names for word in (n, *aliases_of(n, settings)))
    return known


def aliases_of(service: str, settings: RunSettings) -> tuple[str, ...]:
    """What people call a service besides its name, as configured."""
    return tuple(settings.aliases.get(service, ()))


def _locate_alert_service(
    question: str, alert: Alert | None, known: Mapping[str, tuple[str, ...]]
) -> tuple[Alert | None, str]:
    """The alert with its service, found by name or alias in the alert or the question; never guessed.

    The second value says in words what stayed open.
    """
    if alert is not None and (placed := _by_labels(alert, known)):
        return placed, ""
    if alert is not None and alert.service and not is_exporter(alert.service):
        return _under_own_name(alert, alert.service, known)
    found = find_mentioned_services(f"{question}\n{alert.text if alert else ''}", known)
    if found.outcome == "matched" and len(found.services) == 1:
        service = found.services[0]
        if alert is None:
            return Alert(text=question, service=service), ""
        return Alert.model_validate(to_json(alert) | {"service": service}), ""
    if not known or (alert is not None and alert.service):
        return alert, ""
    if found.outcome == "none":
        near = f" (near: {', '.join(found.services[:5])})" if found.services else ""
        return alert, f"which service is meant: the question names none of the known services{near}"
    return alert, f"which service is meant: it may be {', '.join(found.services[:5])}"


def _by_labels(alert: Alert, known: Mapping[str, tuple[str, ...]]) -> Alert | None:
    """The alert with the workload that its labels name, where it names no service, or an exporter as one."""
    if alert.service and not is_exporter(alert.service):
        return None
    called = {alias: service for service, aliases in known.items() for alias in aliases}
    measured = (
        targets_in(alert.labels) if alert.service else ()
    )  # of an exporter: a host is not a service otherwise
    candidates = chain(workloads_in(alert.labels), measured)
    names = (name if name in known else called.get(name) for name in candidates)
    found = next((name for name in names if name), None)
    return Alert.model_validate(to_json(alert) | {"service": found}) if found else None


def _under_own_name(alert: Alert, called: str, known: Mapping[str, tuple[str, ...]]) -> tuple[Alert, str]:
    """The alert with its service's own name, where it came with an alias; what may be several stays open."""
    meant = sorted(service for service, aliases in known.items() if called in aliases)
    if called in known or not meant:
        return alert, ""
    if len(meant) == 1:
        return Alert.model_validate(to_json(alert) | {"service": meant[0]}), ""
    open_alert = Alert.model_validate(to_json(alert) | {"service": None})
    return open_alert, f"which service is meant: {called} may be {', '.join(meant[:5])}"


def _choose_window(
    request: StartRequest, opened: OpenedSources, alert: Alert | None, now: datetime
) -> Window:
    """The options first, then what the operator's own question says, the case, and the alert."""
    incident = opened.case.incident if opened.case else None
    given = _from_options(request, now)
    last = given.end if given else incident.window.end if incident else now
    anchor = (alert.fired_at if alert else None) or last
    try:
        asked = (
            window_from_question(request.question, now=now, anchor=anchor, local=request.local)
            if request.question
            else None
        )
    except ZonelessTimeError as error:
        raise UsageError(str(error)) from None
    return (
        (given and _with_stated_onset(given, asked))
        or asked
        or (incident.window if incident else None)
        or _window_around_alert(alert, now)
    )


def _with_stated_onset(given: Window, asked: Window | None) -> Window:
    """The window of the options, with the time since when it fails by the question, where that lies inside."""
    stated = asked.stated_onset if asked else None
    inside = stated is not None and given.start <= stated < given.end
    return given.model_copy(update={"stated_onset": stated}) if inside else given


def _validate_alert(given: Mapping[str, Any]) -> Alert:
    """The alert as it was handed in; unknown keys are kept as labels."""
    ours = {key: value for key, value in given.items() if key in Alert.model_fields}
    others = {key: value for key, value in given.items() if key not in Alert.model_fields}
    try:
        alert = Alert.model_validate(ours)
        labels = others | alert.labels
        return Alert.model_validate(ours | {"labels": labels, "service": behind_exporter(alert.service, labels)})  # fmt: skip
    except ValidationError as error:
        wrong = format_validation_errors(error)
        raise UsageError(
            f"the alert cannot be read ({wrong}). It needs a `text`, and may have service, metric, severity, "
            "fired_at and onset (RFC 3339 with a zone); other keys are kept as labels"
        ) from None


def _from_options(request: StartRequest, now: datetime) -> Window | None:
    if request.since is None and request.until is None:
        return None
    end = request.until or now
    return Window(start=request.since or end - timedelta(hours=1), end=end, origin="options")


def _window_around_alert(alert: Alert | None, now: datetime) -> Window:
    if alert is None or (alert.onset is None and alert.fired_at is None):
        return Window(start=now - timedelta(hours=1), end=now)
    onset = alert.onset or alert.fired_at or now
    fired = alert.fired_at or onset
    return Window(start=onset - BEFORE_ALERT, end=fired + AFTER_ALERT, origin="alert")
