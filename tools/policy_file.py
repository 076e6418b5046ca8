"""The policy file, TOML: rules, each under its own `[[rule]]`. Whatever is wrong with it stops the start.

[[rule]]
effect = "deny"              # deny, ask, allow, or open (one irreversible tool by its exact name)
tool = "service_*"           # a pattern, or a list of them; default: every tool
target = "*/payments"        # what is acted on, whole or its last part
environment = "production"
arguments = { replicas = "0", "*" = "*rm -rf*" }    # by name, "*" for any
reason = "payments is frozen until Monday"
"""

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args

from opsleuth.state.errors import ConfigError
from opsleuth.tools.policy import Layer, Policy, Rule, Word

_HEADER = re.compile(r"^\s*\[\[\s*rule\s*\]\]", re.MULTILINE)
DECLARED = ("command",)
"""The kinds of tools that a file may declare besides its rules."""
_KEYS = ("effect", "tool", "target", "environment", "arguments", "reason")


def policy_files(given: str | None = None) -> list[tuple[str, Path, bool]]:
    """Where rules are read from: name, path, and whether the layer is trusted. The project's may only tighten.

    Raises ConfigError if the file that was named does not exist.
    """
    home = os.environ.get("XDG_CONFIG_HOME") or ""
    user = Path(home) if Path(home).is_absolute() else Path.home() / ".config"
    files = [
        ("system", Path("/etc/opsleuth/policy.toml"), True),
        ("user", user / "opsleuth" / "policy.toml", True),
        ("project", Path(".opsleuth/policy.toml"), False),
    ]
    if given is None:
        return files
    if not Path(given).is_file():
        raise ConfigError(
            f"there is no policy file {given}: nothing is started without the rules that were asked for"
        )
    return [*files, ("operator", Path(given), True)]


def load(files: Iterable[tuple[str, Path, bool]]) -> Policy:
    """The policy of several files, each with its name and whether it is trusted; one that is absent says nothing.

    Raises ConfigError for a file that cannot be read or is wrong in any part: no rule of it is guessed.
    """
    return Policy(read(name, path, trusted=trusted) for name, path, trusted in files if path.exists())


def read(name: str, path: Path, *, trusted: bool) -> Layer:
    """One file as a layer. Raises ConfigError with the line."""
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"policy file {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"policy file {path} is broken, so nothing is started: {error}") from None
    if unknown := document.keys() - {"rule", *DECLARED}:
        raise ConfigError(
            f"policy file {path}: unknown {', '.join(sorted(unknown))}; "
            f"it holds [[rule]] and {', '.join(f'[{kind}.NAME]' for kind in DECLARED)}"
        )
    if not trusted and (tables := [kind for kind in DECLARED if kind in document]):
        raise ConfigError(f"policy file {path}: a project's file may not declare tools ({', '.join(tables)})")
    rows = document.get("rule", [])
    lines = [text.count("\n", 0, match.start()) + 1 for match in _HEADER.finditer(text)]
    if not isinstance(rows, list) or len(rows) != len(lines):
        raise ConfigError(f"policy file {path}: write each rule under a [[rule]] of its own")
    rules = tuple(_rule(row, line, path) for row, line in zip(rows, lines, strict=True))
    return Layer(f"{name} ({path})", trusted=trusted, rules=rules)


def declared(files: Iterable[tuple[str, Path, bool]]) -> dict[str, dict[str, Any]]:
    """The tools that trusted files declare, by kind and name, as they are written there; a later file wins."""
    found: dict[str, dict[str, Any]] = {kind: {} for kind in DECLARED}
    for _, path, trusted in files:
        if trusted and path.exists():
            document = tomllib.loads(path.read_text(encoding="utf-8"))
            for kind in DECLARED:
                found[kind] |= _tables(document, kind, path)
    return found


def _tables(document: Mapping[str, Any], kind: str, path: Path) -> Mapping[str, Any]:
    tables = document.get(kind, {})
    if not isinstance(tables, Mapping):
        raise ConfigError(f"policy file {path}: write each {kind} under a [{kind}.NAME] of its own")
    return tables


def _rule(row: Mapping[str, Any], line: int, path: Path) -> Rule:
    where = f"policy file {path}, line {line}"
    if unknown := row.keys() - set(_KEYS):
        raise ConfigError(f"{where}: unknown {', '.join(sorted(unknown))}; a rule has {', '.join(_KEYS)}")
    word = row.get("effect")
    if word not in get_args(Word):
        raise ConfigError(f"{where}: effect is {word!r}; choose from {', '.join(get_args(Word))}")
    tools = _patterns(row.get("tool", "*"), "tool", where)
    if word == "open" and any(set(tool) & set("*?[") for tool in tools):
        raise ConfigError(f"{where}: open needs the exact name of a tool, no pattern")
    arguments = row.get("arguments", {})
    if not isinstance(arguments, dict):
        raise ConfigError(f'{where}: arguments is a table, such as {{ replicas = "0" }}')
    return Rule(
        word=cast("Word", word),
        tools=tools,
        targets=_patterns(row["target"], "target", where) if "target" in row else (),
        environments=_patterns(row["environment"], "environment", where) if "environment" in row else (),
        arguments={name: _patterns(value, f"arguments.{name}", where) for name, value in arguments.items()},
        reason=str(row.get("reason", "")),
        line=line,
    )


def _patterns(value: object, name: str, where: str) -> tuple[str, ...]:
    """Patterns in small letters with white space folded, as readings are."""
    values: Sequence[object] = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(item, str) and item.strip() for item in values):
        raise ConfigError(f"{where}: {name} is {value!r}; give a pattern, or a list of patterns, as text")
    return tuple(" ".join(str(item).split()) for item in values)
