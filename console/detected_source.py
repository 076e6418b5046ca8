"""What `opsleuth init` found that can be a source."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DetectedSource:
    """Something that can be a source: its name, its lines of configuration, and how it was noticed."""

    name: str
    lines: tuple[str, ...]
    how: str
