"""The texts that models are given: versioned files in `prompts/`, each known by the hash of its words."""

import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class PromptText(NamedTuple):
    """A prompt: its name, its text, and the first 12 hex digits of the text's SHA-256."""

    name: str
    text: str
    hash: str


@cache
def load_prompt(name: str) -> PromptText:
    """The prompt in the file `<name>.md`."""
    text = files("opsleuth.models").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()
    return PromptText(name, text, hashlib.sha256(text.encode()).hexdigest()[:12])
