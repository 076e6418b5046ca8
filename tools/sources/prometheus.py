"""Prometheus, and whatever speaks its API (VictoriaMetrics, Thanos, Mimir): metrics by service, alerts as events.

What is asked is planned in `prometheus_plan`; this file asks, and turns the answers into series.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from pydantic import Field

from opsleuth.alerts.labels import behind_exporter
from opsleuth.alerts.subject import is_heartbeat
from opsleuth.analysis.records import MetricSeries, PlatformEvent, TimeRange
from opsleuth.configuration.source_settings import PrometheusSettings
from opsleuth.state.json_types import JSON
from opsleuth.tools.concurrency import gather_or_cancel
from opsleuth.tools.sources.http_client import HttpSession, HttpStatusError
from opsleuth.tools.sources.http_source import BackendReply, HttpSource, Part, check_clock_skew
from opsleuth.tools.sources.live_source import FetchedRows, SourceCheck, failed_check
from opsleuth.tools.sources.metric_objects import OBJECT_METRICS, name_object, name_state, never_happened
from opsleuth.tools.sources.prometheus_objects import find_object_metrics, plan_object_queries
from opsleuth.tools.sources.prometheus_queries import (
    ERROR_LABELS,
    MetricCatalogue,
    PlannedQuery,
    QueryRange,
    find_metric_unit,
    label_by_metric,
    plan_queries,
    queries_from_settings,
    rate_if_counter,
)
from opsleuth.tools.sources.promql_queries import run_promql
from opsleuth.tools.sources.source_protocols import Capability, QueryAnswer, QueryLanguage, SourceQuery
from opsleuth.tools.spec import NotPermittedError, ToolError, UnavailableError

# A rate needs two samples; with four one may be late or lost.
_SCRAPES = 4.0
_LOOK_BACK = 3_600.0
_MOST_SAID = 5
# Where in the query a remark applies: `(1:23)`.
_POSITION = re.compile(r"\s*\(\d+:\d+\)$")


class _Remarks(BackendReply):
    """What Prometheus, Thanos and Mimir say beside an answer; VictoriaMetrics says `isPartial`."""

    warnings: list[str] | None = None
    infos: list[str] | None = None
    is_partial: bool = Field(default=False, alias="isPartial")


class _PrometheusNames(BackendReply):
    data: list[str]


class _MetricMetadata(BackendReply):
    type: str = ""


class _MetadataReply(BackendReply):
    data: dict[str, list[_MetricMetadata]]


class _PrometheusSeries(BackendReply):
    """`histograms` are samples of a native histogram, which has no single value."""

    metric: dict[str, str]
    values: list[tuple[float, float]] = Field(default_factory=list)
    histograms: list[JSON] | None = None


class _Sample(BackendReply):
    metric: dict[str, str] = Field(default_factory=dict)
    value: tuple[float, float]


class _Vector(BackendReply):
    result: list[_Sample]


class _Instant(BackendReply):
    data: _Vector


class _PrometheusMatrix(BackendReply):
    result: list[_PrometheusSeries]


class _RangeReply(BackendReply):
    data: _PrometheusMatrix


class _PrometheusBuildInfo(BackendReply):
    version: str = "not told"


class _BuildInfoReply(BackendReply):
    data: _PrometheusBuildInfo


@dataclass(frozen=True, slots=True)
class _Answered:
    """What queries brought: some of them may have been refused."""

    series: Sequence[MetricSeries] = ()
    errors: Sequence[ToolError] = ()
    is_answered: bool = False


class PrometheusSource(HttpSource[PrometheusSettings]):
    """The source of kind `prometheus`."""

    product = "Prometheus"
    capabilities: frozenset[Capability] = frozenset({"metrics", "events"})

    async def ask(self, session: HttpSession, capability: Capability, window: TimeRange) -> FetchedRows:
        if capability == "events":
            return await self._alerts(session, window)
        return await self._metrics(session, window)

    query_languages: frozenset[QueryLanguage] = frozenset({"promql"})

    async def run_query(self, language: QueryLanguage, query: SourceQuery) -> QueryAnswer:
        return await self.run_in_session(
            language, lambda session: run_promql(session, self.parsed, query, self.settings.match)
        )

    async def discover(self) -> None:
        async with self.api().session() as session:
            for label in self.settings.service_labels:
                answer = await session.get(f"/api/v1/label/{label}/values", **self._matching(label))
                names = self._whole(session, _PrometheusNames, answer.document).data
                for name in names:
                    self.named(name)
                if names:
                    return

    async def _metrics(self, session: HttpSession, window: TimeRange) -> FetchedRows:
        span = QueryRange.over(window, self.settings.before, self.settings.step)
        questions, missed = await self._questions(session, span)
        answers = await gather_or_cancel(self._ask(session, question, span) for question in questions)
        failed = [error for answer in answers for error in answer.errors]
        series = list(chain.from_iterable(answer.series for answer in answers))
        if failed and not any(answer.is_answered for answer in answers):
            raise failed[0]
        missed += _first_few(dict.fromkeys(str(error) for error in failed))
        if len(series) > self.settings.max_series:
            missed.append(
                f"{len(series):,} series: the first {self.settings.max_series:,} were taken; narrow `match`"
            )
        kept = series[: self.settings.max_series]
        return FetchedRows({"metrics": kept}, missed=tuple(missed))

    async def _questions(
        self, session: HttpSession, span: QueryRange
    ) -> tuple[Sequence[PlannedQuery], list[str]]:
        if self.settings.queries:
            return queries_from_settings(self.settings), []
        catalogue = await self._catalogue(session, span)
        planned, notes = plan_queries(catalogue, self.settings, span)
        owner = label_by_metric(catalogue)
        labels = dict.fromkeys(owner[name] for name in sorted(catalogue.about_objects))
        about = [
            question
            for label in labels
            for question in plan_object_queries(
                [name for name in sorted(catalogue.about_objects) if owner[name] == label],
                label,
                self.settings,
                span,
            )
        ]
        return [*planned, *about], notes

    async def _find_object_metrics(
        self, session: HttpSession, by_label: Mapping[str, Sequence[str]], span: QueryRange
    ) -> frozenset[str]:
        """Metrics about objects whose service label names the program that reports them."""
        found: frozenset[str] = frozenset()
        for label, names in by_label.items():
            if not any(re.fullmatch(OBJECT_METRICS, name) for name in names):
                continue
            conditions = ",".join(
                filter(None, [f'__name__=~"{OBJECT_METRICS}",{label}!=""', self.settings.match])
            )
            query = (
                f"count by (__name__, {label}) (last_over_time({{{conditions}}}[{max(span.step, 300.0):g}s]))"
            )
            answer = await session.get("/api/v1/query", query=query, time=f"{span.end:.3f}")
            rows = self.parsed(_Instant, answer.document).data.result
            found |= find_object_metrics((row.metric for row in rows), label)
        return found

    async def _catalogue(self, session: HttpSession, span: QueryRange) -> MetricCatalogue:
        """Which metric names carry which service label, which have failed requests, and what the server says of types."""
        first, *others = self.settings.service_labels
        # The first goes alone: what is wrong with all of them shows there, and none is broken off in its handshake.
        names = [await self._names(session, f'{first}!=""', span)]
        names += await gather_or_cancel(self._names(session, f'{label}!=""', span) for label in others)
        failing = await gather_or_cancel(
            self._names(session, f'{label}=~"5..|5xx"', span) for label in ERROR_LABELS
        )
        try:
            told = self.parsed(_MetadataReply, (await session.get("/api/v1/metadata")).document).data
            types = {name: rows[0].type for name, rows in told.items() if rows}
        except (NotPermittedError, UnavailableError):  # Thanos and recorded blocks have none
            types = {}
        by_label = dict(zip((first, *others), names, strict=True))
        return MetricCatalogue(
            by_label=by_label,
            about_objects=await self._find_object_metrics(session, by_label, span),
            failing=dict(zip(ERROR_LABELS, failing, strict=True)),
            types=types,
        )

    async def _names(self, session: HttpSession, condition: str, span: QueryRange) -> Sequence[str]:
        selector = ",".join(filter(None, [condition, self.settings.match]))
        answer = await session.get(
            "/api/v1/label/__name__/values",
            **{"match[]": f"{{{selector}}}", "start": f"{span.start:.0f}", "end": f"{span.end:.0f}"},
        )
        return self._whole(session, _PrometheusNames, answer.document).data

    def _matching(self, label: str) -> Mapping[str, str]:
        match = self.settings.match
        return {"match[]": f'{{{label}!="",{match}}}'} if match else {}

    async def _ask(self, session: HttpSession, asked: PlannedQuery, span: QueryRange) -> _Answered:
        """The series of one query. One that asks for several metrics and is refused is asked in halves."""
        try:
            rows = await self._rows(session, asked, span)
        except (NotPermittedError, UnavailableError) as error:
            if isinstance(error, HttpStatusError) and (halves := asked.halves()):
                return _join_answers(
                    await gather_or_cancel(self._ask(session, half, span) for half in halves)
                )
            return _Answered(errors=(error,))
        for row in rows:
            if row.histograms and not row.values:
                name = asked.metric or row.metric.get("__name__", asked.query)
                session.api.partial[f"{name}: a native histogram is not read as it is; give `queries` with histogram_quantile"] = None  # fmt: skip
        series = (self._series(row, asked) for row in rows)
        return _Answered([one for one in series if one is not None], is_answered=True)

    async def _rows(
        self, session: HttpSession, asked: PlannedQuery, span: QueryRange
    ) -> Sequence[_PrometheusSeries]:
        """Where a rate comes back empty although there are samples, it is taken over the interval that they have."""
        rows = await self._range(session, asked.query, span)
        if rows or not asked.selector:
            return rows
        seconds = min(span.end - span.start, _LOOK_BACK)
        counted = f"max(count_over_time({asked.selector}[{seconds:g}s]))"
        answer = await session.get("/api/v1/query", query=counted, time=f"{span.end:.3f}")
        found = self.parsed(_Instant, answer.document).data.result
        samples = found[0].value[1] if found else 0.0
        if samples < 2:
            return rows
        wider = asked.over(min(_SCRAPES * seconds / samples, seconds))
        return await self._range(session, wider.query, span) if wider.window > asked.window else rows

    async def _range(self, session: HttpSession, query: str, span: QueryRange) -> Sequence[_PrometheusSeries]:
        answer = await session.post(
            "/api/v1/query_range",
            query=query,
            start=f"{span.start:.3f}",
            end=f"{span.end:.3f}",
            step=f"{span.step:g}",
        )
        return self._whole(session, _RangeReply, answer.document).data.result

    def _whole(self, session: HttpSession, model: type[Part], document: JSON) -> Part:
        """The answer in its form; what the server says that it lacks is kept."""
        parsed, told = self.parsed(model, document), self.parsed(_Remarks, document)
        session.api.partial |= dict.fromkeys(_POSITION.sub("", text)[:300] for text in told.warnings or ())
        session.api.remarks |= dict.fromkeys(
            _first_few(_POSITION.sub("", text)[:300] for text in told.infos or ())
        )
        if told.is_partial:
            session.api.partial["the server says that its answer is partial: a part of its storage did not answer"] = None  # fmt: skip
        return parsed

    def _series(self, row: _PrometheusSeries, asked: PlannedQuery) -> MetricSeries | None:
        if asked.by_object:
            return self._object_series(row, asked)
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
        series = MetricSeries(self.named(name), metric, unit, times, values, instance)
        return rate_if_counter(series) if asked.guessed else series

    def _object_series(self, row: _PrometheusSeries, asked: PlannedQuery) -> MetricSeries | None:
        """A series of the workload, node or claim that its labels name; None for anything else."""
        about = name_object(row.metric)
        finite = [(time, value) for time, value in row.values if value - value == 0.0]
        if about is None or not finite:
            return None
        times, values = zip(*finite, strict=True)
        base = asked.metric or row.metric.get("__name__", "")
        metric = name_state(base, row.metric)
        unit = asked.unit if asked.unit is not None else find_metric_unit(base, self.settings)
        if never_happened(metric, values):
            return None
        return MetricSeries(self.named(about.service), metric, unit, times, values, about.pod)

    async def _alerts(self, session: HttpSession, window: TimeRange) -> FetchedRows:
        span = QueryRange.over(window, self.settings.before, self.settings.step)
        rows = await self._range(session, 'ALERTS{alertstate="firing"}', span)
        lasting = [row for row in rows if row.values and not is_heartbeat(row.metric.get("alertname", ""))]
        events = [self._alert(row, span) for row in lasting]
        return FetchedRows({"events": events})

    def _alert(self, row: _PrometheusSeries, span: QueryRange) -> PlatformEvent:
        labels = row.metric
        first, last = row.values[0][0], row.values[-1][0]
        named = next((labels[label] for label in self.settings.service_labels if label in labels), "")
        service = behind_exporter(named, labels)
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

    def parsed(self, model: type[Part], document: JSON) -> Part:
        """Raises UnavailableError with the server's own words, where it says that it could not."""
        if not isinstance(document, Mapping) or document.get("status") != "success":
            told = document.get("error") if isinstance(document, Mapping) else type(document).__name__
            raise UnavailableError(f"{self.name}: not a valid {self.product} response ({str(told)[:300]})")
        return super().parsed(model, document)

    async def check(self) -> Sequence[SourceCheck]:
        api = self.api()
        async with api.session() as session:
            checks = [await self._version(session), *await self._clock(session)]
            try:
                await self.discover()
            except ToolError as error:
                return [*checks, failed_check("labels", error, "allow GET /api/v1/label/…/values")]
        partial = [
            SourceCheck("storage", "warning", text, "look at what the server reads from")
            for text in api.partial
        ]
        return [*checks, self._found(), *partial]

    async def _version(self, session: HttpSession) -> SourceCheck:
        try:
            answer = await session.get("/api/v1/status/buildinfo")
            version = self.parsed(_BuildInfoReply, answer.document).data.version
        except UnavailableError:
            return SourceCheck("version", "ok", "not reported by the server")
        return SourceCheck("version", "ok", version)

    async def _clock(self, session: HttpSession) -> Sequence[SourceCheck]:
        answer = await session.get("/api/v1/query", query="1")
        self._whole(session, BackendReply, answer.document)
        return [SourceCheck("queries", "ok", "answered"), check_clock_skew(session.api.skew)]

    def _found(self) -> SourceCheck:
        labels = ", ".join(self.settings.service_labels)
        if not self._seen:
            return SourceCheck(
                "services",
                "warning",
                f"no series has a label of {labels}",
                "set service_labels to the label that names services",
            )
        return SourceCheck("services", "ok", f"{len(self._seen)}: {', '.join(sorted(self._seen)[:8])}")


def _join_answers(parts: Iterable[_Answered]) -> _Answered:
    several = list(parts)
    return _Answered(
        [series for part in several for series in part.series],
        [error for part in several for error in part.errors],
        any(part.is_answered for part in several),
    )


def _first_few(texts: Iterable[str]) -> list[str]:
    """Of many alike a person needs a few, and to know that there are more."""
    found = list(dict.fromkeys(texts))
    return (
        found
        if len(found) <= _MOST_SAID
        else [*found[:_MOST_SAID], f"and {len(found) - _MOST_SAID} more like these"]
    )
