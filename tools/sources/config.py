"""The sources of an environment and the names of services, from the user's and the project's configuration file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from opsleuth.state.base import Frozen, Name
from opsleuth.state.configfile import problems, read_toml
from opsleuth.state.errors import ConfigError
from opsleuth.tools.nearest import suggestion
from opsleuth.tools.sources.secrets import Secret
from opsleuth.tools.sources.settings import SourceSettings

SETTINGS: TypeAdapter[SourceSettings] = TypeAdapter(SourceSettings)


class ServiceFacts(Frozen):
    """What people call a service besides its name, in any language, and whom it calls."""

    aliases: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    calls: Annotated[tuple[Name, ...], Field(max_length=1_000)] = ()


class Environment(Frozen):
    """The sources of one environment, by the name that reports call them."""

    sources: dict[Name, SourceSettings] = Field(default_factory=dict)


class _Document(BaseModel):
    """Our part of a configuration file; other tables (model profiles, prices) are read elsewhere."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True, frozen=True)

    environment: Name | None = None
    environments: dict[Name, Environment] = Field(default_factory=dict)
    services: dict[Name, ServiceFacts] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Configured:
    """What is configured for one environment: source name to settings as JSON, service to its aliases.

    `project` is the project's file if there is one, `digest` the SHA-256 of its bytes; `reaches` tells in words
    what that file alone would let opsleuth reach or run, for a person who decides whether to trust it.
    """

    environment: str | None
    sources: Mapping[str, Mapping[str, Any]]
    aliases: Mapping[str, tuple[str, ...]]
    project: Path | None = None
    digest: str = ""
    reaches: tuple[str, ...] = ()


def configured(
    user: Path, project: Path | None, wanted: str | None = None, *, lenient: bool = False
) -> Configured:
    """The sources of environment `wanted`, else of the file's own choice, else of the only one.

    `lenient` takes none where that leaves several. What the project's file says wins over the user's, name by name. Raises ConfigError.
    """
    theirs, _ = _read(user)
    ours, digest = _read(project) if project else (_Document(), "")
    environments = {**_environments(theirs, user), **_environments(ours, project)}
    default = ours.environment or theirs.environment
    several = lenient and len(environments) > 1 and not (wanted or default)
    chosen = None if several else _choose(wanted, default, environments)
    merged: dict[str, Mapping[str, Any]] = {}
    for document, path in ((theirs, user), (ours, project)):
        environment = document.environments.get(chosen or "")
        if environment and path:
            merged |= {name: _placed(settings, path) for name, settings in environment.sources.items()}
    facts = {**theirs.services, **ours.services}
    return Configured(
        environment=chosen,
        sources={**merged, **_declared(facts)} if merged else merged,
        aliases={service: entry.aliases for service, entry in facts.items()},
        project=project,
        digest=digest,
        reaches=_reaches(ours),
    )


def _read(path: Path) -> tuple[_Document, str]:
    document, digest = read_toml(path)
    try:
        return _Document.model_validate(document), digest
    except ValidationError as error:
        raise ConfigError(f"{path} cannot be used: {problems(error)}") from None


def _environments(document: _Document, path: Path | None) -> dict[str, Path | None]:
    return dict.fromkeys(document.environments, path)


def _choose(wanted: str | None, default: str | None, known: Mapping[str, Path | None]) -> str | None:
    chosen = wanted or default
    if chosen is None:
        if len(known) > 1:
            raise ConfigError(
                f"which environment is meant? {', '.join(known)}: name one with --environment, "
                'or set environment = "…" at the top of the configuration file'
            )
        return next(iter(known), None)
    if chosen not in known and (wanted or known):
        raise ConfigError(f"there is no environment {chosen!r} ({suggestion(chosen, known)})")
    return chosen


def _placed(settings: SourceSettings, file: Path) -> Mapping[str, Any]:
    """The settings as JSON, with paths made absolute: relative ones start at the folder that holds `.opsleuth`."""
    base = file.parent.parent if file.parent.name == ".opsleuth" else file.parent
    raw = settings.model_dump(mode="json", exclude_defaults=True) | {"kind": settings.kind}
    for key in ("path", "folder", "ca_file", "client_cert", "client_key"):
        if isinstance(raw.get(key), str):
            raw[key] = _absolute(base, raw[key])
    if "files" in raw:
        raw["files"] = [_absolute(base, part) for part in raw["files"]]
    return raw


def _absolute(base: Path, path: str) -> str:
    expanded = Path(path).expanduser()
    return str(expanded if expanded.is_absolute() else base.absolute() / expanded)


def _declared(facts: Mapping[str, ServiceFacts]) -> Mapping[str, Mapping[str, Any]]:
    """What the file says of services is a source of its own."""
    calls = {service: list(entry.calls) for service, entry in facts.items() if entry.calls}
    return {"configuration": {"kind": "declared", "calls": calls}} if calls else {}


def _reaches(document: _Document) -> tuple[str, ...]:
    found = []
    for environment, entry in document.environments.items():
        for name, settings in entry.sources.items():
            raw = settings.model_dump(mode="json", exclude_none=True)
            where = (
                raw.get("url") or _in_words(settings) or raw.get("path") or raw.get("files") or "this machine"
            )
            found.append(f"{environment}.{name}: {settings.kind} {where}{_commands(raw)}")
    return tuple(found)


def _in_words(settings: SourceSettings) -> str:
    dsn = getattr(settings, "dsn", "")
    return dsn.place if isinstance(dsn, Secret) else str(dsn)


def _commands(raw: Any) -> str:  # noqa: ANN401 - any JSON value
    if isinstance(raw, Mapping):
        own = f", runs {' '.join(raw['command'])}" if raw.get("command") else ""
        return own + "".join(_commands(value) for value in raw.values())
    return ""
