"""The policy file, TOML: rules, each under its own `[[rule]]`. Whatever is wrong with it stops the start.

[[rule]]
effect = "deny"              # deny, ask, allow, or open (one irreversible tool by its exact name)
tool = "service_*"           # a pattern, or a list of them; default: every tool
target = "*/payments"        # what is acted on, whole or its last part
environment = "production"
arguments = { replicas = "0", "*" = "*rm -rf*" }    # by name, "*" for any
reason = "payments is frozen until Monday"
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

from opsleuth.state.configfile import POLICY, ConfigFile, config_files, read_file
from opsleuth.state.errors import ConfigError
from opsleuth.tools.policy import Layer, Policy, Rule, Word

_HEADER = re.compile(r"^\s*\[\[\s*rule\s*\]\]", re.MULTILINE)
DECLARED = ("command", "http", "kubernetes", "mcp", "systemd")
"""The kinds of tools that a file may declare besides its rules."""
_KEYS = ("effect", "tool", "target", "environment", "arguments", "reason")


def policy_files(given: str | None = None) -> tuple[ConfigFile, ...]:
    """Where rules are read from: the system's, the user's, the project's file, and the one that was named.

    Raises ConfigError for a file that cannot be read, and if the one that was named does not exist.
    """
    files = config_files(POLICY)
    if given is None:
        return files
    if not Path(given).is_file():
        raise ConfigError(
            f"there is no policy file {given}: nothing is started without the rules that were asked for"
        )
    return (*files, read_file("operator", Path(given)))


def load(files: Iterable[ConfigFile]) -> Policy:
    """The policy of several files. Raises ConfigError for one that is wrong in any part: no rule of it is guessed."""
    return Policy(read(file) for file in files)


def read(file: ConfigFile) -> Layer:
    """One file as a layer. Raises ConfigError with the line."""
    if unknown := file.document.keys() - {"rule", *DECLARED}:
        raise ConfigError(
            f"policy file {file.path}: unknown {', '.join(sorted(unknown))}; "
            f"it holds [[rule]] and {', '.join(f'[{kind}.NAME]' for kind in DECLARED)}"
        )
    if not file.trusted and (tables := [kind for kind in DECLARED if kind in file.document]):
        raise ConfigError(
            f"policy file {file.path}: a project's file may not declare tools ({', '.join(tables)}) "
            "before it is trusted. Read it, then say so: opsleuth trust"
        )
    rows = file.document.get("rule", [])
    lines = [file.text.count("\n", 0, match.start()) + 1 for match in _HEADER.finditer(file.text)]
    if not isinstance(rows, list) or len(rows) != len(lines):
        raise ConfigError(f"policy file {file.path}: write each rule under a [[rule]] of its own")
    rules = tuple(_rule(row, line, file.path) for row, line in zip(rows, lines, strict=True))
    return Layer(f"{file.layer} ({file.path})", trusted=file.trusted, rules=rules)


def declared(files: Iterable[ConfigFile]) -> dict[str, dict[str, Any]]:
    """The tools that trusted files declare, by kind and name, as they are written there; a later file wins."""
    trusted = [file for file in files if file.trusted]
    return {kind: {n: t for file in trusted for n, t in file.table(kind).items()} for kind in DECLARED}


def loosens(file: ConfigFile) -> Iterator[str]:
    """What this file would let run, in words for a person who decides whether to trust it. Raises ConfigError."""
    for rule in read(replace(file, trusted=True)).rules:
        if rule.word in ("allow", "open"):
            yield f"line {rule.line}: {rule.word} {', '.join(rule.tools)}"
    for kind in DECLARED:
        for name, declaration in file.table(kind).items():
            yield f"{kind} {name}: {json.dumps(declaration, ensure_ascii=False, default=str)}"


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
