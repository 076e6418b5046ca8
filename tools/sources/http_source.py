"""What all sources over HTTP share: how an answer becomes a model, and what their clocks and requests tell."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from opsleuth.analysis.records import Span
from opsleuth.state.configfile import problems
from opsleuth.tools.sources.base import Capability
from opsleuth.tools.sources.http import Api, Session
from opsleuth.tools.sources.live import SKEW_SECONDS, Check, Fetched, LiveSource, Surroundings
from opsleuth.tools.sources.settings import Http
from opsleuth.tools.spec import Unavailable

Settings = TypeVar("Settings", bound=Http)
Part = TypeVar("Part", bound=BaseModel)


class Reply(BaseModel):
    """Base of what a backend answers: what is not asked for is passed over, no value stands in an error."""

    model_config = ConfigDict(hide_input_in_errors=True, frozen=True)


class HttpSource(LiveSource, Generic[Settings]):
    """Base of the sources over HTTP. `product` is what error texts call the backend; subclasses give `ask`."""

    product: str

    def __init__(self, name: str, settings: Settings, surroundings: Surroundings) -> None:
        super().__init__(name, settings, surroundings)
        self.settings = settings

    def api(self) -> Api:
        return Api(self.name, self.settings, self.vault, self.clock)

    async def fetch(self, capability: Capability, window: Span) -> Fetched:
        """What `ask` finds, with the requests behind it and what is wrong with the server's clock."""
        api = self.api()
        async with api.session() as session:
            found = await self.ask(session, capability, window)
        return Fetched(found.rows, (*found.asked, *api.log), (*found.notes, *_skewed(api)), found.missed)

    @abstractmethod
    async def ask(self, session: Session, capability: Capability, window: Span) -> Fetched:
        """The rows of one capability that may bear on `window`. Raises ToolError."""

    def parsed(self, model: type[Part], document: Any) -> Part:  # noqa: ANN401 - any JSON value
        """The answer in its form. Raises Unavailable for anything that the product would not say."""
        try:
            return model.model_validate(document)
        except ValidationError as error:
            raise Unavailable(
                f"{self.name}: the answer is none of {self.product} ({problems(error)[:300]})"
            ) from None


def clock_check(skew: float | None) -> Check:
    """What `doctor` says of a server's clock, given how far it is ahead of ours in seconds."""
    if skew is None:
        return Check("clock", "ok", "not told by the server")
    if abs(skew) > SKEW_SECONDS:
        return Check("clock", "warning", skew_text(skew), "let NTP set both clocks")
    return Check("clock", "ok", f"{skew:+.0f} s")


def _skewed(api: Api) -> Sequence[str]:
    return (skew_text(api.skew),) if api.skew is not None and abs(api.skew) > SKEW_SECONDS else ()


def skew_text(skew: float) -> str:
    way = "ahead of" if skew > 0 else "behind"
    return f"the server's clock is {abs(skew):.0f} s {way} ours: its times are shifted against other sources"
