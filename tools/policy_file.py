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

from opsleuth.configuration.config_file import POLICY, ConfigFile, load_config_layers, read_config_file
from opsleuth.state.canonical_json import to_canonical_json
from opsleuth.state.errors import ConfigError
from opsleuth.tools.policy import Policy, PolicyLayer, PolicyRule, RuleEffect

_HEADER = re.compile(r"^\s*\[\[\s*rule\s*\]\]", re.MULTILINE)
DECLARED = ("command", "http", "kubernetes", "mcp", "systemd")
"""The kinds of tools that a file may declare besides its rules."""
_KEYS = ("effect", "tool", "target", "environment", "arguments", "reason")


def find_policy_files(*given: str | None) -> tuple[ConfigFile, ...]:
    """Where rules are read from: the system's, the user's, the project's file, and those that were named.

    Raises ConfigError for a file that cannot be read, and if one that was named does not exist.
    """
    named = dict.fromkeys(path for path in given if path is not None)
    return (*load_config_layers(POLICY), *(_read_named_file(Path(path)) for path in named))


def _read_named_file(path: Path) -> ConfigFile:
    if not path.is_file():
        raise ConfigError(
            f"there is no policy file {path}: nothing is started without the requested rules. "
            "Put the file back, or name another one with --policy"
        )
    return read_config_file("operator", path)


def load_policy(files: Iterable[ConfigFile]) -> Policy:
    """The policy of several files. Raises ConfigError for one that is wrong in any part: no rule of it is guessed."""
    return Policy(read_policy_layer(file) for file in files)


def read_policy_layer(file: ConfigFile) -> PolicyLayer:
    """One file as a layer. Raises ConfigError with the line."""
    if unknown := file.document.keys() - {"rule", *DECLARED}:
        raise ConfigError(
            f"policy file {file.path}: unknown {', '.join(sorted(unknown))}; "
            f"it holds [[rule]] and {', '.join(f'[{kind}.NAME]' for kind in DECLARED)}"
        )
    if not file.trusted and (tables := [kind for kind in DECLARED if kind in file.document]):
        raise ConfigError(
            f"policy file {file.path}: a project's file may not declare tools ({', '.join(tables)}) "
            "before it is trusted. Read it, then trust it: opsleuth trust"
        )
    rows = file.document.get("rule", [])
    lines = [file.text.count("\n", 0, match.start()) + 1 for match in _HEADER.finditer(file.text)]
    if not isinstance(rows, list) or len(rows) != len(lines):
        raise ConfigError(f"policy file {file.path}: write each rule under a [[rule]] of its own")
    rules = tuple(_parse_rule(row, line, file.path) for row, line in zip(rows, lines, strict=True))
    return PolicyLayer(f"{file.layer} ({file.path})", trusted=file.trusted, rules=rules)


def collect_declared_tables(files: Iterable[ConfigFile]) -> dict[str, dict[str, Any]]:
    """The tools that trusted files declare, by kind and name, as they are written there; a later file wins."""
    trusted = [file for file in files if file.trusted]
    return {kind: {n: t for file in trusted for n, t in file.table(kind).items()} for kind in DECLARED}


def describe_permissions(file: ConfigFile) -> Iterator[str]:
    """What this file would let run, in words for the person who decides whether to trust it. Raises ConfigError."""
    for rule in read_policy_layer(replace(file, trusted=True)).rules:
        if rule.word in ("allow", "open"):
            yield f"line {rule.line}: {rule.word} {', '.join(rule.tools)}"
    for kind in DECLARED:
        for name, declaration in file.table(kind).items():
            yield f"{kind} {name}: {json.dumps(declaration, ensure_ascii=False, default=str)}"


def _parse_rule(row: Mapping[str, Any], line: int, path: Path) -> PolicyRule:
    where = f"policy file {path}, line {line}"
    if unknown := row.keys() - set(_KEYS):
        raise ConfigError(f"{where}: unknown {', '.join(sorted(unknown))}; a rule has {', '.join(_KEYS)}")
    word = row.get("effect")
    if word not in get_args(RuleEffect):
        raise ConfigError(f"{where}: effect is {word!r}; choose from {', '.join(get_args(RuleEffect))}")
    tools = _parse_patterns(row.get("tool", "*"), "tool", where)
    if word == "open" and any(set(tool) & set("*?[") for tool in tools):
        raise ConfigError(f"{where}: open needs the exact name of a tool, no pattern")
    arguments = row.get("arguments", {})
    if not isinstance(arguments, dict):
        raise ConfigError(f'{where}: arguments is a table, such as {{ replicas = "0" }}')
    return PolicyRule(
        word=cast("RuleEffect", word),
        tools=tools,
        targets=_parse_patterns(row["target"], "target", where) if "target" in row else (),
        environments=_parse_patterns(row["environment"], "environment", where)
        if "environment" in row
        else (),
        arguments={
            name: _parse_patterns(value, f"arguments.{name}", where) for name, value in arguments.items()
        },
        reason=str(row.get("reason", "")),
        line=line,
    )


def _parse_patterns(value: object, name: str, where: str) -> tuple[str, ...]:
    """Patterns in small letters with white space folded, as readings are; a number or a truth value as it is."""
    given: Sequence[object] = value if isinstance(value, list) else [value]
    values = [to_canonical_json(item) if isinstance(item, bool | int | float) else item for item in given]
    if not values or not all(isinstance(item, str) and item.strip() for item in values):
        raise ConfigError(f"{where}: {name} is {value!r}; give a pattern, or a list of patterns, as text")
    return tuple(" ".join(str(item).split()) for item in values)
