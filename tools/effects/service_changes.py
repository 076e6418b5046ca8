"""Changes of a service: restart, rollback, scale, flag, delete, and the look at its state.

Each change reads the service first and is sent for the revision that was read, so that it cannot undo what
somebody else did meanwhile. Its record holds the service `before`, against which the check afterwards compares.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from opsleuth.analysis.metric_roles import find_metric_role
from opsleuth.analysis.number_format import format_number
from opsleuth.state.calls import ResultStatus, Risk
from opsleuth.state.plurals import format_count
from opsleuth.tools.arguments import Service
from opsleuth.tools.effects.platform import (
    Kind,
    MeasureReading,
    Platform,
    PlatformOperation,
    ServiceView,
    describe_location,
)
from opsleuth.tools.spec import (
    Arguments,
    InvalidArgumentsError,
    NotPermittedError,
    ToolContext,
    ToolResult,
    ToolSpec,
    TransientError,
    UnavailableError,
)

_MOVED = math.log(1.5)
"""Of a measure's logarithm: less is its everyday noise."""
_TOLD_FIRST = ("latency", "failures")
"""What users feel, by the role of a metric."""

SETTLES_SECONDS = 60.0
"""How long a changed service may take until its state says so."""


class ServiceArguments(Arguments):
    service: Service


class RollbackArguments(ServiceArguments):
    version: Annotated[str, Field(min_length=1, max_length=200, description="a version that ran before")]


class ScaleArguments(ServiceArguments):
    replicas: Annotated[int, Field(ge=0, le=1000, description="instances, 0 to 1000")]


class FlagArguments(ServiceArguments):
    flag: Annotated[str, Field(min_length=1, max_length=200)]
    on: bool


ServiceBefore = Mapping[str, Any]
Missing = Callable[[ServiceView, Any, ServiceBefore], str]
"""What is still missing after the change, in words; empty if nothing is."""


@dataclass(frozen=True, slots=True)
class ServiceEffect:
    """One kind of change on one platform. `pointless` says why there is nothing to do, empty if there is."""

    platform: Platform
    kind: Kind
    pointless: Callable[[ServiceView, Any], str]
    missing: Missing

    async def precheck(self, arguments: ServiceArguments, _: ToolContext) -> ToolResult:
        """Raises InvalidArgumentsError for an unknown service, NotPermittedError if there is nothing to do.

        `change` of the record is what the platform says that would change: another one than was approved is not made.
        """
        view = await self._view(arguments.service)
        if why := self.pointless(view, arguments):
            raise NotPermittedError(f"{why}: there is nothing to do ({view.line()})")
        said = await self.platform.dry_run(self.operation(arguments), view.revision)
        line = f"{view.line()}; {said}" if said else view.line()
        record = view.facts() | {"change": said}
        return ToolResult(record=record, headline=line, source=self.platform.name)

    async def run(self, arguments: ServiceArguments, context: ToolContext) -> ToolResult:
        try:
            before = await self._view(arguments.service)
        except TransientError as error:  # a change that was not sent is not a change that nobody knows about
            raise UnavailableError(f"nothing was sent: {error}") from None
        operation = self.operation(arguments)
        answer = await self.platform.submit(operation, context.idempotency_key or "", before.revision)
        return ToolResult(
            record={"before": before.facts(), "measures": before.measures, "answer": dict(answer)},
            headline=f"{self.kind} of {arguments.service}: {answer.get('status', 'answered')}",
            source=self.platform.name,
        )

    async def probe(self, arguments: ServiceArguments, context: ToolContext) -> ToolResult:
        return await probe_request(self.platform, self.operation(arguments), context)

    async def postcondition(self, arguments: ServiceArguments, context: ToolContext) -> ToolResult:
        view = await self.platform.service(arguments.service)
        if view is None:
            return self._gone(arguments)
        missing = self.missing(view, arguments, context.result.get("before", {}))
        moved = describe_movement(context.result.get("measures", {}), view.measures)
        line = f"{view.line()}{moved}"
        return ToolResult(
            record=view.facts() | {"missing": missing, "measures": view.measures},
            headline=f"{line}: {missing}" if missing else line,
            status=ResultStatus.NONE_MATCHED if missing else ResultStatus.OK,
            source=self.platform.name,
        )

    def operation(self, arguments: ServiceArguments) -> PlatformOperation:
        rest = arguments.model_dump(exclude={"service"})
        return PlatformOperation(self.kind, arguments.service, rest)

    def target(self, arguments: ServiceArguments) -> str:
        return f"{self.platform.name}/{arguments.service}"

    async def _view(self, service: str) -> ServiceView:
        view = await self.platform.service(service)
        if view is None:
            raise InvalidArgumentsError(f"{self.platform.name} has no service {service!r}")
        return view

    def _gone(self, arguments: ServiceArguments) -> ToolResult:
        wanted = self.kind == "delete"
        return ToolResult(
            record={"service": arguments.service, "exists": False},
            headline=f"{arguments.service} is gone",
            status=ResultStatus.OK if wanted else ResultStatus.NONE_MATCHED,
            source=self.platform.name,
        )


async def probe_request(platform: Platform, operation: PlatformOperation, context: ToolContext) -> ToolResult:
    """What the platform knows of the request with this key: found, absent, or not to be told."""
    found = await platform.applied(operation, context.idempotency_key or "", context.begun)
    words = {
        True: (ResultStatus.OK, "was carried out"),
        False: (ResultStatus.NONE_MATCHED, "was not carried out"),
        None: (ResultStatus.NOT_RECORDED, f"cannot be looked up: {platform.name} does not report it"),
    }
    status, what = words[found]
    return ToolResult(
        record={"applied": found},
        headline=f"{operation.kind} of {operation.target} {what}",
        status=status,
        source=platform.name,
    )


def describe_movement(before: Mapping[str, Sequence[Any]], now: Mapping[str, MeasureReading]) -> str:
    """`; latency_p50 0.912 → 0.0431 s`: how long requests take, failing that how many fail, failing that what moved most."""
    moved = {
        name: abs(math.log(reading.value / before[name][0]))
        for name, reading in now.items()
        if name in before and before[name][0] > 0 < reading.value
    }
    found = [name for name, size in moved.items() if size >= _MOVED]
    if not found:
        return ""
    name = min(found, key=lambda one: (_rank_measure(one, now[one].unit), one))
    role = find_metric_role(name, now[name].unit)
    scale, unit = (role.scale, "s") if role and role.is_time else (1.0, now[name].unit)
    values = (format_number(scale * float(value)) for value in (before[name][0], now[name].value))
    return f"; {name} {' → '.join(values)} {unit}".rstrip()


def _rank_measure(name: str, unit: str) -> int:
    role = find_metric_role(name, unit)
    return _TOLD_FIRST.index(role.name) if role and role.name in _TOLD_FIRST else len(_TOLD_FIRST)


def _health_complaint(view: ServiceView) -> str:
    return "" if view.health == "healthy" else f"it is still {view.health}"


def _missing_after_restart(view: ServiceView, _: object, before: ServiceBefore) -> str:
    if "restarts" in before and view.restarts <= before["restarts"]:
        return "it was not restarted"
    return _health_complaint(view)


def _missing_after_rollback(view: ServiceView, arguments: RollbackArguments, _: ServiceBefore) -> str:
    return _health_complaint(view) if view.runs(arguments.version) else f"it does not run {arguments.version}"


def _rollback_objection(view: ServiceView, arguments: RollbackArguments) -> str:
    if view.runs(arguments.version):
        return f"it runs {arguments.version} already"
    if arguments.version not in view.versions:
        return f"{view.name} never ran {arguments.version!r}; it ran {', '.join(view.versions)}"
    return ""


def _missing_after_scale(view: ServiceView, arguments: ScaleArguments, _: ServiceBefore) -> str:
    return (
        ""
        if view.replicas == arguments.replicas
        else f"it does not have {format_count(arguments.replicas, 'replica')}"
    )


def _missing_after_flag(view: ServiceView, arguments: FlagArguments, _: ServiceBefore) -> str:
    word = "on" if arguments.on else "off"
    return "" if view.flags.get(arguments.flag) is arguments.on else f"flag {arguments.flag} is not {word}"


def _build_state_tool(platform: Platform) -> ToolSpec:
    async def run(arguments: ServiceArguments, _: ToolContext) -> ToolResult:
        view = await platform.service(arguments.service)
        if view is None:
            raise InvalidArgumentsError(f"{platform.name} has no service {arguments.service!r}")
        return ToolResult(record=view.facts(), headline=view.line(), source=platform.name)

    return ToolSpec(
        name="service_state",
        purpose="A service as the platform reports it now: version and those before, replicas, flags, health.",
        not_for="What it did in the incident window: use metrics_query or logs_search.",
        arguments=ServiceArguments,
        example={"service": "checkout"},
        run=run,
        target=lambda arguments: f"{platform.name}/{arguments.service}",
    )


def _build_change_tool(change: ServiceEffect, **fields: Any) -> ToolSpec:  # noqa: ANN401 - fields of the spec
    return ToolSpec(
        run=change.run,
        precheck=change.precheck,
        probe=change.probe,
        postcondition=change.postcondition,
        target=change.target,
        binding=lambda _: describe_location(change.platform),
        takes_key=change.platform.keys,
        environment=change.platform.environment,
        settles=SETTLES_SECONDS,
        **fields,
    )


def build_service_tools(platform: Platform) -> tuple[ToolSpec, ...]:
    """The look at a service, and the changes that the platform can make."""
    changes = _change_tools_by_kind(platform)
    return (_build_state_tool(platform), *(spec for kind, spec in changes.items() if kind in platform.kinds))


def _change_tools_by_kind(platform: Platform) -> Mapping[Kind, ToolSpec]:
    return {
        "restart": _build_change_tool(
            ServiceEffect(platform, "restart", lambda *_: "", _missing_after_restart),
            name="service_restart",
            purpose="Restart all instances of a service.",
            not_for="Undoing a release: use service_rollback.",
            arguments=ServiceArguments,
            example={"service": "checkout"},
            risk=Risk.HIGH,
            undo="a restart cannot be taken back; it ends by itself",
        ),
        "rollback": _build_change_tool(
            ServiceEffect(platform, "rollback", _rollback_objection, _missing_after_rollback),
            name="service_rollback",
            purpose="Go back to a version of a service that ran before.",
            not_for="A new release.",
            arguments=RollbackArguments,
            example={"service": "checkout", "version": "2.4.1"},
            risk=Risk.HIGH,
            undo="roll back again, to the version that runs now",
        ),
        "scale": _build_change_tool(
            ServiceEffect(
                platform,
                "scale",
                lambda v, a: _already_done_objection(_missing_after_scale(v, a, {})),
                _missing_after_scale,
            ),
            name="service_scale",
            purpose="Set the number of instances of a service.",
            not_for="Restarting it.",
            arguments=ScaleArguments,
            example={"service": "checkout", "replicas": 6},
            risk=Risk.HIGH,
            undo="scale to the number of before",
        ),
        "flag": _build_change_tool(
            ServiceEffect(
                platform,
                "flag",
                lambda v, a: _already_done_objection(_missing_after_flag(v, a, {})),
                _missing_after_flag,
            ),
            name="flag_set",
            purpose="Turn a feature flag of a service on or off.",
            not_for="Any other configuration.",
            arguments=FlagArguments,
            example={"service": "checkout", "flag": "new-cart", "on": False},
            risk=Risk.HIGH,
            undo="set it to the value of before",
        ),
        "delete": _build_change_tool(
            ServiceEffect(platform, "delete", lambda *_: "", lambda *_: "it still exists"),
            name="service_delete",
            purpose="Delete a service with all its instances.",
            not_for="Stopping it for a while: scale it to 0.",
            arguments=ServiceArguments,
            example={"service": "checkout-canary"},
            risk=Risk.IRREVERSIBLE,
            undo="cannot be undone",
        ),
    }


def _already_done_objection(missing: str) -> str:
    return "" if missing else "it is so already"
