"""Prometheus, and whatever speaks its API (VictoriaMetrics, Thanos, Mimir): metrics by service, alerts as events.

What is asked is planned in `prometheus_plan`; this file asks, and turns the answers into series.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from opsleuth.analysis.records import PlatformEvent, Series, Span
from opsleuth.tools.sources.base import Capability
from opsleuth.tools.sources.http import Session
from opsleuth.tools.sources.http_source import HttpSource, Part, Reply, clock_check
from opsleuth.tools.sources.live import Check, Fetched, refused
from opsleuth.tools.sources.prometheus_plan import (
    ERROR_LABELS,
    Asked,
    Catalogue,
    Range,
    as_rate,
    from_settings,
    plan,
)
from opsleuth.tools.sources.settings import Prometheus
from opsleuth.tools.spec import NotPermitted, ToolError, Unavailable
from opsleuth.tools.together import together


class _Names(Reply):
    data: list[str]


class _MetadataRow(Reply):
    type: str = ""


class _Metadata(Reply):
    data: dict[str, list[_MetadataRow]]


class _Row(Reply):
    metric: dict[str, str]
    values: list[tuple[float, float]]


class _Matrix(Reply):
    result: list[_Row]


class _Ranged(Reply):
    data: _Matrix


class _BuildInfo(Reply):
    version: str = "not told"


class _Version(Reply):
    data: _BuildInfo


class PrometheusSource(HttpSource[Prometheus]):
    """The source of kind `prometheus`."""

    product = "Prometheus"
    capabilities: frozenset[Capability] = frozenset({"metrics", "events"})

    async def ask(self, session: Session, capability: Capability, window: Span) -> Fetched:
        if capability == "events":
            return await self._alerts(session, window)
        return await self._metrics(session, window)

    async def discover(self) -> None:
        async with self.api().session() as session:
            for label in self.settings.service_labels:
                answer = await session.get(f"/api/v1/label/{label}/values", **self._matching(label))
                names = self.parsed(_Names, answer.document).data
                for name in names:
                    self.named(name)
                if names:
                    return

    async def _metrics(self, session: Session, window: Span) -> Fetched:
        span = Range.over(window, self.settings.before, self.settings.step)
        questions, missed = await self._questions(session, span)
        answers = await together(self._ask(session, question, span) for question in questions)
        failed = [answer for answer in answers if isinstance(answer, ToolError)]
        if failed and len(failed) == len(answers):
            raise failed[0]
        missed += list(dict.fromkeys(str(error) for error in failed))[:5]
        series = list(chain.from_iterable(a for a in answers if not isinstance(a, ToolError)))
        if len(series) > self.settings.max_series:
            missed.append(
                f"{len(series):,} series: the first {self.settings.max_series:,} were taken; narrow `match`"
            )
        kept = series[: self.settings.max_series]
        return Fetched({"metrics": kept}, missed=tuple(missed))

    async def _questions(self, session: Session, span: Range) -> tuple[Sequence[Asked], list[str]]:
        if self.settings.queries:
            return from_settings(self.settings), []
        return plan(await self._catalogue(session, span), self.settings, span)

    async def _catalogue(self, session: Session, span: Range) -> Catalogue:
        """Which metric names carry which service label, which have failed requests, and what the server says of types."""
        first, *others = self.settings.service_labels
        # The first goes alone: what is wrong with all of them shows there, and none is broken off in its handshake.
        names = [await self._names(session, f'{first}!=""', span)]
        names += await together(self._names(session, f'{label}!=""', span) for label in others)
        failing = await together(self._names(session, f'{label}=~"5..|5xx"', span) for label in ERROR_LABELS)
        try:
            told = self.parsed(_Metadata, (await session.get("/api/v1/metadata")).document).data
            types = {name: rows[0].type for name, rows in told.items() if rows}
        except (NotPermitted, Unavailable):  # Thanos and recorded blocks have none
            types = {}
        return Catalogue(
            by_label=dict(zip((first, *others), names, strict=True)),
            failing=dict(zip(ERROR_LABELS, failing, strict=True)),
            types=types,
        )

    async def _names(self, session: Session, condition: str, span: Range) -> Sequence[str]:
        selector = ",".join(filter(None, [condition, self.settings.match]))
        answer = await session.get(
            "/api/v1/label/__name__/values",
            **{"match[]": f"{{{selector}}}", "start": f"{span.start:.0f}", "end": f"{span.end:.0f}"},
        )
        return self.parsed(_Names, answer.document).data

    def _matching(self, label: str) -> Mapping[str, str]:
        match = self.settings.match
        return {"match[]": f'{{{label}!="",{match}}}'} if match else {}

    async def _ask(self, session: Session, asked: Asked, span: Range) -> list[Series] | ToolError:
        try:
            rows = await self._range(session, asked.query, span)
        except (NotPermitted, Unavailable) as error:
            return error
        series = (self._series(row, asked) for row in rows)
        return [one for one in series if one is not None]

    async def _range(self, session: Session, query: str, span: Range) -> Sequence[_Row]:
        answer = await session.post(
            "/api/v1/query_range",
            query=query,
            start=f"{span.start:.3f}",
            end=f"{span.end:.3f}",
            step=f"{span.step:g}",
        )
        return self.parsed(_Ranged, answer.document).data.result

    def _series(self, row: _Row, asked: Asked) -> Series | None:
        labels = row.metric
        name = asked.service or next(
            (labels[label] for label in self.settings.service_labels if labels.get(label)), None
        )
        finite = [(time, value) for time, value in row.values if value - value == 0.0]
        if name is None or not finite:
            return None
        times, values = zip(*finite, strict=True)
        metric = asked.metric or labels.get("__name__", "")
        unit = asked.unit if asked.unit is not None else self.settings.units.get(metric, "")
        instance = labels.get(self.settings.instance_label) if self.settings.instance_label else None
        series = Series(self.named(name), metric, unit, times, values, instance)
        return as_rate(series) if asked.guessed else series

    async def _alerts(self, session: Session, window: Span) -> Fetched:
        span = Range.over(window, self.settings.before, self.settings.step)
        rows = await self._range(session, 'ALERTS{alertstate="firing"}', span)
        events = [self._alert(row, span) for row in rows if row.values]
        return Fetched({"events": events})

    def _alert(self, row: _Row, span: Range) -> PlatformEvent:
        labels = row.metric
        first, last = row.values[0][0], row.values[-1][0]
        service = next((labels[label] for label in self.settings.service_labels if label in labels), "")
        rest = ", ".join(
            f"{k}={v}" for k, v in labels.items() if k not in ("__name__", "alertname", "alertstate")
        )
        still = "fires" if last + span.step > span.end else "fired until then"
        return PlatformEvent(
            time=last,
            source="prometheus",
            object=f"Alert/{self.named(service) if service else labels.get('alertname', '')}",
            type="Warning",
            reason=labels.get("alertname", "alert"),
            message=f"{still}: {rest}",
            first_time=first,
        )

    def parsed(self, model: type[Part], document: Any) -> Part:  # noqa: ANN401 - any JSON value
        """Raises Unavailable with the server's own words, where it says that it could not."""
        if not isinstance(document, Mapping) or document.get("status") != "success":
            told = document.get("error") if isinstance(document, Mapping) else type(document).__name__
            raise Unavailable(f"{self.name}: the answer is none of {self.product} ({str(told)[:300]})")
        return super().parsed(model, document)

    async def check(self) -> Sequence[Check]:
        api = self.api()
        async with api.session() as session:
            checks = [await self._version(session), *await self._clock(session)]
            try:
                await self.discover()
            except ToolError as error:
                return [*checks, refused("labels", error, "allow GET /api/v1/label/…/values")]
        return [*checks, self._found()]

    async def _version(self, session: Session) -> Check:
        try:
            answer = await session.get("/api/v1/status/buildinfo")
            version = self.parsed(_Version, answer.document).data.version
        except Unavailable:
            return Check("version", "ok", "not told by the server")
        return Check("version", "ok", version)

    async def _clock(self, session: Session) -> Sequence[Check]:
        answer = await session.get("/api/v1/query", query="1")
        self.parsed(Reply, answer.document)
        return [Check("queries", "ok", "answered"), clock_check(session.api.skew)]

    def _found(self) -> Check:
        labels = ", ".join(self.settings.service_labels)
        if not self._seen:
            return Check(
                "services",
                "warning",
                f"no series has a label of {labels}",
                "set service_labels to the label that names services",
            )
        return Check("services", "ok", f"{len(self._seen)}: {', '.join(sorted(self._seen)[:8])}")
