"""What a run starts with: its question, window, limits and sources, from what the operator asked for."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

from pydantic import ValidationError

from opsleuth.analysis.topology import callees_of
from opsleuth.graph.absent import absent_from, no_data
from opsleuth.graph.alerts import declared_calls, understood
from opsleuth.state.base import to_json
from opsleuth.state.budget import Budget, Limits
from opsleuth.state.clock import Clock
from opsleuth.state.configfile import problems
from opsleuth.state.errors import ConfigError, UsageError
from opsleuth.state.investigation import Alert, Demand, Investigation, Window
from opsleuth.tools.sources.base import Sources
from opsleuth.tools.sources.case import CaseFolder
from opsleuth.tools.sources.incident import Incident, NotACase
from opsleuth.tools.sources.opening import open_live
from opsleuth.tools.sources.secrets import Vault
from opsleuth.tools.sources.targets import apart, spoken_names
from opsleuth.verification.checklist import demands
from opsleuth.verification.question import ZonelessTime, window_of
from opsleuth.verification.service_names import mentioned_services

BEFORE_ALERT = timedelta(minutes=30)
AFTER_ALERT = timedelta(minutes=5)
"""Without a window of its own, an alert is looked at from half an hour before it to a little after."""


@dataclass(frozen=True, slots=True)
class Settings:
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

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """The settings out of the run's row; keys of other versions are passed over."""
        return cls(**{k: v for k, v in stored.items() if k in cls.__dataclass_fields__})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


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
    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True, slots=True)
class Opened:
    """The sources of a run, and what the case itself says of the incident, if there is one."""

    sources: Sources
    case: CaseFolder | None = None
    vault: Vault = field(default_factory=Vault)


def open_sources(settings: Settings) -> Opened:
    """The case alone, or the configured sources. Raises ConfigError without any, and for a folder that is no case."""
    if settings.case is None:
        if not settings.sources:
            raise ConfigError(
                "there is neither a case nor a configured source: give --case DIR, or configure one (opsleuth init)"
            )
        vault = Vault()
        return Opened(Sources(apart(open_live(settings.sources, vault))), vault=vault)
    try:
        case = CaseFolder.open(settings.case)
    except NotACase as error:
        raise ConfigError(str(error)) from None
    return Opened(Sources([case]), case)


def first_state(request: StartRequest, opened: Opened, clock: Clock) -> Investigation:
    """The state before the first node. Raises UsageError for an alert, a window or a limit that cannot be."""
    incident = opened.case.incident if opened.case else None
    told = understood(request.alert, _calls(request.settings, opened), clock.now()) if request.alert else None
    alert = _alert(told) if told else incident.alert if incident else None
    asked = request.question or (_asked_in(incident) if incident else "")
    question = asked or (alert.text if alert else "")
    if not question:
        raise ConfigError(
            "nothing was asked: give a question, an alert (--alert FILE) or a case (--case DIR)"
        )
    known = _known(opened.sources, request.settings)
    alert, unresolved = _placed(question, alert, known)
    absent = absent_from(request.question, alert if request.alert else None, known, opened.case)
    try:
        return Investigation(
            question=question,
            from_alert=not asked,
            alert=alert,
            unresolved=no_data(absent, known) if absent else unresolved,
            absent=absent,
            window=_window(request, opened, alert, clock.now()),
            checklist=demands(asked, tuple(known)),
            read_only=request.settings.read_only,
            budget=Budget(limits=Limits.model_validate(to_json(Limits()) | dict(request.limits))),
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


def _asked_in(incident: Incident) -> str:
    """The case's own question; empty where it is only the text of its alert."""
    return "" if incident.alert and incident.alert.text == incident.question else incident.question


def meaning(state: Investigation, service: str) -> Investigation:
    """The state once a person has said which service is meant."""
    known = to_json(state.alert) if state.alert else {"text": state.question}
    return state.changed(alert=Alert.model_validate(known | {"service": service}), unresolved="", absent=())


def _calls(settings: Settings, opened: Opened) -> Mapping[str, Collection[str]]:
    """Whom each service calls, as far as that is known before anything is asked."""
    if opened.case is None:
        return declared_calls(settings.sources)
    return callees_of(opened.case.recording({"topology"}).topology)


def _known(sources: Sources, settings: Settings) -> Mapping[str, tuple[str, ...]]:
    """Every service that the sources or the configuration name, with what people call it."""
    plain = spoken_names(sources.services, sources.by_name.values())
    configured = (
        set() if settings.case else settings.aliases.keys() - {n for names in plain.values() for n in names}
    )
    known = {name: aliases_of(name, settings) for name in sources.services | configured}
    for name, names in plain.items():
        known[name] += tuple(word for n in names for word in (n, *aliases_of(n, settings)))
    return known


def aliases_of(service: str, settings: Settings) -> tuple[str, ...]:
    """What people call a service besides its name, as configured."""
    return tuple(settings.aliases.get(service, ()))


def _placed(
    question: str, alert: Alert | None, known: Mapping[str, tuple[str, ...]]
) -> tuple[Alert | None, str]:
    """The alert with its service, found by name or alias in the alert or the question; never guessed.

    The second value says in words what stayed open.
    """
    if alert is not None and alert.service:
        return _under_own_name(alert, alert.service, known)
    found = mentioned_services(f"{question}\n{alert.text if alert else ''}", known)
    if found.outcome == "matched" and len(found.services) == 1:
        service = found.services[0]
        if alert is None:
            return Alert(text=question, service=service), ""
        return Alert.model_validate(to_json(alert) | {"service": service}), ""
    if not known:
        return alert, ""
    if found.outcome == "none":
        near = f" (near: {', '.join(found.services[:5])})" if found.services else ""
        return alert, f"which service is meant: the question names none that the sources know{near}"
    return alert, f"which service is meant: it may be {', '.join(found.services[:5])}"


def _under_own_name(alert: Alert, called: str, known: Mapping[str, tuple[str, ...]]) -> tuple[Alert, str]:
    """The alert with its service's own name, where it came with an alias; what may be several stays open."""
    meant = sorted(service for service, aliases in known.items() if called in aliases)
    if called in known or not meant:
        return alert, ""
    if len(meant) == 1:
        return Alert.model_validate(to_json(alert) | {"service": meant[0]}), ""
    open_alert = Alert.model_validate(to_json(alert) | {"service": None})
    return open_alert, f"which service is meant: {called} may be {', '.join(meant[:5])}"


def _window(request: StartRequest, opened: Opened, alert: Alert | None, now: datetime) -> Window:
    """The options first, then what the operator's own question says, the case, and the alert."""
    incident = opened.case.incident if opened.case else None
    anchor = (alert.fired_at if alert else None) or (incident.window.end if incident else now)
    try:
        asked = window_of(request.question, now=now, anchor=anchor) if request.question else None
    except ZonelessTime as error:
        raise UsageError(str(error)) from None
    return (
        _from_options(request, now) or asked or (incident.window if incident else None) or _around(alert, now)
    )


def _alert(given: Mapping[str, Any]) -> Alert:
    """The alert as it was handed in; keys that nobody knows are kept as labels."""
    ours = {key: value for key, value in given.items() if key in Alert.model_fields}
    others = {key: value for key, value in given.items() if key not in Alert.model_fields}
    try:
        alert = Alert.model_validate(ours)
        return Alert.model_validate(ours | {"labels": others | alert.labels})
    except ValidationError as error:
        wrong = problems(error)
        raise UsageError(
            f"the alert cannot be read ({wrong}). It needs a `text`, and may have service, metric, severity, "
            "fired_at and onset (RFC 3339 with a zone); other keys are kept as labels"
        ) from None


def _from_options(request: StartRequest, now: datetime) -> Window | None:
    if request.since is None and request.until is None:
        return None
    end = request.until or now
    return Window(start=request.since or end - timedelta(hours=1), end=end, origin="options")


def _around(alert: Alert | None, now: datetime) -> Window:
    if alert is None or (alert.onset is None and alert.fired_at is None):
        return Window(start=now - timedelta(hours=1), end=now)
    onset = alert.onset or alert.fired_at or now
    fired = alert.fired_at or onset
    return Window(start=onset - BEFORE_ALERT, end=fired + AFTER_ALERT, origin="alert")
