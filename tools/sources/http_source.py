"""What HTTP sources share: parsing answers, clock skew and the log of requests."""

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from opsleuth.analysis.records import TimeRange
from opsleuth.configuration.config_file import format_validation_errors
from opsleuth.configuration.source_settings import HttpSettings
from opsleuth.state.json_types import JSON
from opsleuth.tools.sources.http_client import HttpApi, HttpSession, HttpStatusError
from opsleuth.tools.sources.live_source import (
    SKEW_SECONDS,
    FetchedRows,
    LiveSource,
    SourceCheck,
    SourceRuntime,
)
from opsleuth.tools.sources.source_protocols import Capability, QueryAnswer, QueryLanguage
from opsleuth.tools.spec import InvalidArgumentsError, UnavailableError

Settings = TypeVar("Settings", bound=HttpSettings)
Part = TypeVar("Part", bound=BaseModel)


class BackendReply(BaseModel):
    """Base of what a backend answers: anything that is not asked for is passed over, no value appears in an error."""

    model_config = ConfigDict(hide_input_in_errors=True, frozen=True)


class HttpSource(LiveSource, Generic[Settings]):
    """Base of the sources over HTTP. `product` is what error texts call the backend; subclasses give `ask`."""

    product: str

    def __init__(self, name: str, settings: Settings, surroundings: SourceRuntime) -> None:
        super().__init__(name, settings, surroundings)
        self.settings = settings

    def api(self) -> HttpApi:
        return HttpApi(self.name, self.settings, self.vault, self.clock)

    async def fetch(self, capability: Capability, window: TimeRange) -> FetchedRows:
        """What `ask` finds, with the requests behind it and what is wrong with the server's clock."""
        api = self.api()
        async with api.session() as session:
            found = await self.ask(session, capability, window)
        notes = (*found.notes, *api.remarks, *_clock_skew_notes(api))
        return FetchedRows(found.rows, (*found.asked, *api.log), notes, (*found.missed, *api.partial))

    @abstractmethod
    async def ask(self, session: HttpSession, capability: Capability, window: TimeRange) -> FetchedRows:
        """The rows of one capability that may bear on `window`. Raises ToolError."""

    async def run_in_session(
        self, language: QueryLanguage, ask: Callable[[HttpSession], Awaitable[QueryAnswer]]
    ) -> QueryAnswer:
        """What `ask` answers within the source's time, with the requests behind it.

        Raises InvalidArgumentsError where the backend does not read the query, ToolError, TimeoutError.
        """
        api = self.api()
        try:
            async with asyncio.timeout(self.fetch_seconds), api.session() as session:
                answer = await ask(session)
        except HttpStatusError as error:
            if error.status_code in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY):
                raise InvalidArgumentsError(f"not a valid {language} query: {error}") from None
            raise
        sent, notes = (*answer.sent, *api.log), (*answer.notes, *api.partial, *api.remarks)
        return replace(answer, sent=sent, notes=notes)

    def parsed(self, model: type[Part], document: JSON) -> Part:
        """The answer in its form. Raises UnavailableError for anything that the product would not say."""
        try:
            return model.model_validate(document)
        except ValidationError as error:
            raise UnavailableError(
                f"{self.name}: not a valid {self.product} response ({format_validation_errors(error)[:300]})"
            ) from None


def check_clock_skew(skew: float | None) -> SourceCheck:
    """What `doctor` says of a server's clock, given how far it is ahead of ours in seconds."""
    if skew is None:
        return SourceCheck("clock", "ok", "not reported by the server")
    if abs(skew) > SKEW_SECONDS:
        return SourceCheck("clock", "warning", clock_skew_text(skew), "let NTP set both clocks")
    return SourceCheck("clock", "ok", f"{skew:+.0f} s")


def _clock_skew_notes(api: HttpApi) -> Sequence[str]:
    return (clock_skew_text(api.skew),) if api.skew is not None and abs(api.skew) > SKEW_SECONDS else ()


def clock_skew_text(skew: float) -> str:
    way = "ahead of" if skew > 0 else "behind"
    return f"the server's clock is {abs(skew):.0f} s {way} ours: its times are shifted against other sources"
