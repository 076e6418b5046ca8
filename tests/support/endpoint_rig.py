"""One request to an endpoint, with pauses that take no time."""

import asyncio
from typing import Any

from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.models.chat_endpoint import ModelEndpoint
from opsleuth.models.model_reply import ModelReply, ModelRequest

HELLO = ModelRequest([{"role": "user", "content": "hello"}])


class Patient:
    """Sleeps in no time, and remembers for how long."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.pauses.append(seconds)


def ask(
    url: str,
    sleep: Patient | None = None,
    asked: ModelRequest = HELLO,
    seconds: float = 60.0,
    **settings: Any,
) -> ModelReply:
    """The reply of the endpoint at `url`, with the errors that it raises."""
    made = ModelSettings.model_validate({"model": "m", "base_url": url, "timeout": 20} | settings)

    async def once() -> ModelReply:
        endpoint = ModelEndpoint(made, "key-1234567890", sleep=sleep or Patient(), jitter=lambda: 0.5)
        try:
            return await endpoint.ask(asked, seconds)
        finally:
            await endpoint.aclose()

    return asyncio.run(once())
