"""The model check of `opsleuth doctor`: one cheap question that proves address, key and model."""

from time import monotonic

from opsleuth.configuration.model_keys import read_key
from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.console.source_checks import CheckedSource
from opsleuth.models.chat_endpoint import ModelEndpoint
from opsleuth.models.model_reply import ModelRequest
from opsleuth.state.errors import OpsleuthError
from opsleuth.tools.sources.live_source import SourceCheck

MODEL_SECONDS = 20.0
"""A small answer of a loaded model takes less; a model that is still loading is reported as such."""
CHEAP_TOKENS = 128
QUESTION = "Answer with the one word: ready"


async def check_model(settings: ModelSettings) -> CheckedSource:
    """The configured model, asked once: whether it answers, or what it says instead."""
    began = monotonic()
    cheap = settings.model_copy(update={"tries": 1, "timeout": MODEL_SECONDS, "output_tokens": CHEAP_TOKENS})
    try:
        endpoint = ModelEndpoint(cheap, read_key(settings))
        try:
            reply = await endpoint.ask(ModelRequest([{"role": "user", "content": QUESTION}]), MODEL_SECONDS)
        finally:
            await endpoint.aclose()
    except OpsleuthError as error:
        checks = [SourceCheck("answers", "failed", str(error))]
    else:
        said = " ".join(reply.text.split())[:40] or "no words"
        counted = "counts tokens" if reply.tokens else "counts no tokens: limits use an estimate"
        checks = [SourceCheck("answers", "ok", f"{settings.base_url}: {said!r}; it {counted}")]
    keys = [place for place in (settings.key_env, settings.key_file, settings.key_command) if place]
    return CheckedSource(
        settings.model, "model", monotonic() - began, checks, [f"key from {k}" for k in keys]
    )
