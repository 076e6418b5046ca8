"""Changes of a service: restart, rollback, scale, flag, delete, and the look at its state.

Each change reads the service first and is sent for the revision that was read, so that it cannot undo what
somebody else did meanwhile. Its record holds the service `before`, against which the check afterwards compares.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from opsleuth.state.calls import ResultStatus, Risk
from opsleuth.state.words import counted
from opsleuth.tools.arguments import Service
from opsleuth.tools.effects.platform import Kind, Operation, Platform, ServiceView
from opsleuth.tools.spec import (
    Arguments,
    InvalidArguments,
    NotPermitted,
    ToolContext,
    ToolResult,
    ToolSpec,
    Transient,
    Unavailable,
)

SETTLES_SECONDS = 60.0
"""How long a changed service may take until its state says so."""


class ServiceArguments(Arguments):
    service: Service


class Rollback(ServiceArguments):
    version: Annotated[str, Field(min_length=1, max_length=200, description="a version that ran before")]


class Scale(ServiceArguments):
    replicas: Annotated[int, Field(ge=0, le=1000, description="instances, 0 to 1000")]


class Flag(ServiceArguments):
    flag: Annotated[str, Field(min_length=1, max_length=200)]
    on: bool


Before = Mapping[str, Any]
Missing = Callable[[ServiceView, Any, Before], str]
"""What is still missing after the change, in words; empty if all is as it should be."""


@dataclass(frozen=True, slots=True)
class Change:
    """One kind of change on one platform. `pointless` says why there is nothing to do, empty if there is."""

    platform: Platform
    kind: Kind
    pointless: Callable[[ServiceView, Any], str]
    missing: Missing

    async def precheck(self, arguments: ServiceArguments, _: ToolContext) -> ToolResult:
        """Raises InvalidArguments for an unknown service, NotPermitted if there is nothing to do.

        `change` of the record is what the platform says that would change: another one than was approved is not made.
        """
        view = await self._view(arguments.service)
        if why := self.pointless(view, arguments):
            raise NotPermitted(f"{why}: there is nothing to do ({view.line()})")
        said = await self.platform.rehearse(self.operation(arguments), view.revision)
        line = f"{view.line()}; {said}" if said else view.line()
        record = view.facts() | {"change": said}
        return ToolResult(record=record, headline=line, source=self.platform.name)

    async def run(self, arguments: ServiceArguments, context: ToolContext) -> ToolResult:
        try:
            before = await self._view(arguments.service)
        except Transient as error:  # a change that was not sent is no change that nobody knows about
            raise Unavailable(f"nothing was sent: {error}") from None
        operation = self.operation(arguments)
        answer = await self.platform.submit(operation, context.idempotency_key or "", before.revision)
        return ToolResult(
            record={"before": before.facts(), "answer": dict(answer)},
            headline=f"{self.kind} of {arguments.service}: {answer.get('status', 'answered')}",
            source=self.platform.name,
        )

    async def probe(self, arguments: ServiceArguments, context: ToolContext) -> ToolResult:
        return await probed(self.platform, self.operation(arguments), context)

    async def postcondition(self, arguments: ServiceArguments, context: ToolContext) -> ToolResult:
        view = await self.platform.service(arguments.service)
        if view is None:
            return self._gone(arguments)
        missing = self.missing(view, arguments, context.result.get("before", {}))
        return ToolResult(
            record=view.facts() | {"missing": missing},
            headline=f"{view.line()}: {missing}" if missing else view.line(),
            status=ResultStatus.NONE_MATCHED if missing else ResultStatus.OK,
            source=self.platform.name,
        )

    def operation(self, arguments: ServiceArguments) -> Operation:
        rest = arguments.model_dump(exclude={"service"})
        return Operation(self.kind, arguments.service, rest)

    def target(self, arguments: ServiceArguments) -> str:
        return f"{self.platform.name}/{arguments.service}"

    async def _view(self, service: str) -> ServiceView:
        view = await self.platform.service(service)
        if view is None:
            raise InvalidArguments(f"{self.platform.name} has no service {service!r}")
        return view

    def _gone(self, arguments: ServiceArguments) -> ToolResult:
        wanted = self.kind == "delete"
        return ToolResult(
            record={"service": arguments.service, "exists": False},
            headline=f"{arguments.service} is gone",
            status=ResultStatus.OK if wanted else ResultStatus.NONE_MATCHED,
            source=self.platform.name,
        )


async def probed(platform: Platform, operation: Operation, context: ToolContext) -> ToolResult:
    """What the platform knows of the request with this key: found, absent, or not to be told."""
    found = await platform.applied(operation, context.idempotency_key or "", context.begun)
    words = {
        True: (ResultStatus.OK, "was carried out"),
        False: (ResultStatus.NONE_MATCHED, "was not carried out"),
        None: (ResultStatus.NOT_RECORDED, f"cannot be looked up: {platform.name} does not tell"),
    }
    status, what = words[found]
    return ToolResult(
        record={"applied": found},
        headline=f"{operation.kind} of {operation.target} {what}",
        status=status,
        source=platform.name,
    )


def _ill(view: ServiceView) -> str:
    return "" if view.health == "healthy" else f"it is still {view.health}"


def _restarted(view: ServiceView, _: Any, before: Before) -> str:  # noqa: ANN401 - one shape for all changes
    if "restarts" in before and view.restarts <= before["restarts"]:
        return "it was not restarted"
    return _ill(view)


def _rolled_back(view: ServiceView, arguments: Rollback, _: Before) -> str:
    return _ill(view) if view.runs(arguments.version) else f"it does not run {arguments.version}"


def _not_rollable(view: ServiceView, arguments: Rollback) -> str:
    if view.runs(arguments.version):
        return f"it runs {arguments.version} already"
    if arguments.version not in view.versions:
        return f"{view.name} never ran {arguments.version!r}; it ran {', '.join(view.versions)}"
    return ""


def _scaled(view: ServiceView, arguments: Scale, _: Before) -> str:
    return (
        ""
        if view.replicas == arguments.replicas
        else f"it does not have {counted(arguments.replicas, 'replica')}"
    )


def _flagged(view: ServiceView, arguments: Flag, _: Before) -> str:
    word = "on" if arguments.on else "off"
    return "" if view.flags.get(arguments.flag) is arguments.on else f"flag {arguments.flag} is not {word}"


def _look(platform: Platform) -> ToolSpec:
    async def run(arguments: ServiceArguments, _: ToolContext) -> ToolResult:
        view = await platform.service(arguments.service)
        if view is None:
            raise InvalidArguments(f"{platform.name} has no service {arguments.service!r}")
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


def _spec(change: Change, **fields: Any) -> ToolSpec:  # noqa: ANN401 - fields of the spec
    return ToolSpec(
        run=change.run,
        precheck=change.precheck,
        probe=change.probe,
        postcondition=change.postcondition,
        target=change.target,
        takes_key=change.platform.keys,
        environment=change.platform.environment,
        settles=SETTLES_SECONDS,
        **fields,
    )


def service_tools(platform: Platform) -> tuple[ToolSpec, ...]:
    """The look at a service, and the changes that the platform can make."""
    changes = _changes(platform)
    return (_look(platform), *(spec for kind, spec in changes.items() if kind in platform.kinds))


def _changes(platform: Platform) -> Mapping[Kind, ToolSpec]:
    return {
        "restart": _spec(
            Change(platform, "restart", lambda *_: "", _restarted),
            name="service_restart",
            purpose="Restart all instances of a service.",
            not_for="Undoing a release: use service_rollback.",
            arguments=ServiceArguments,
            example={"service": "checkout"},
            risk=Risk.HIGH,
            undo="a restart cannot be taken back; it ends by itself",
        ),
        "rollback": _spec(
            Change(platform, "rollback", _not_rollable, _rolled_back),
            name="service_rollback",
            purpose="Go back to a version of a service that ran before.",
            not_for="A new release.",
            arguments=Rollback,
            example={"service": "checkout", "version": "2.4.1"},
            risk=Risk.HIGH,
            undo="roll back again, to the version that runs now",
        ),
        "scale": _spec(
            Change(platform, "scale", lambda v, a: _same(_scaled(v, a, {})), _scaled),
            name="service_scale",
            purpose="Set the number of instances of a service.",
            not_for="Restarting it.",
            arguments=Scale,
            example={"service": "checkout", "replicas": 6},
            risk=Risk.HIGH,
            undo="scale to the number of before",
        ),
        "flag": _spec(
            Change(platform, "flag", lambda v, a: _same(_flagged(v, a, {})), _flagged),
            name="flag_set",
            purpose="Turn a feature flag of a service on or off.",
            not_for="Any other configuration.",
            arguments=Flag,
            example={"service": "checkout", "flag": "new-cart", "on": False},
            risk=Risk.HIGH,
            undo="set it to the value of before",
        ),
        "delete": _spec(
            Change(platform, "delete", lambda *_: "", lambda *_: "it still exists"),
            name="service_delete",
            purpose="Delete a service with all its instances.",
            not_for="Stopping it for a while: scale it to 0.",
            arguments=ServiceArguments,
            example={"service": "checkout-canary"},
            risk=Risk.IRREVERSIBLE,
            undo="cannot be undone",
        ),
    }


def _same(missing: str) -> str:
    return "" if missing else "it is so already"
