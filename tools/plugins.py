"""Tools of installed Python packages, by the entry point `opsleuth.tools`: a `ToolSpec`, several, or a function that makes them.

A package of others may raise anything as it is imported. What cannot be used is left out and named in the run's
warnings: no investigation fails for it.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from opsleuth.state.calls import Risk
from opsleuth.tools.registry import parse_arguments
from opsleuth.tools.spec import CARRIED, ToolError, ToolSpec
from opsleuth.tools.truncation import cut_text

GROUP = "opsleuth.tools"
_NAME = re.compile(r"[a-z][a-z0-9_]{2,63}")


class InstalledPlugins(NamedTuple):
    """The tools of installed packages, and what is wrong with those that are left out."""

    specs: tuple[ToolSpec, ...] = ()
    problems: tuple[str, ...] = ()


def load_plugins(taken: Iterable[str] = ()) -> InstalledPlugins:
    """Every usable tool of every package; `taken` are names that others have already."""
    names, specs, problems = set(taken), list[ToolSpec](), list[str]()
    for point in _find_entry_points(tuple(sys.path)):
        origin = (
            f"package {point.dist.name} {point.dist.version}" if point.dist else f"entry point {point.name}"
        )
        try:
            found = list(_load_specs(point))
            for spec in found:
                _check_plugin_spec(spec, names)
        except Exception as error:  # noqa: BLE001 - the border to code of others
            text = cut_text(f"{type(error).__name__}: {error}", 300)
            problems.append(f"tools of {origin} are left out: {text}")
            continue
        names |= {spec.name for spec in found}
        specs += [replace(spec, origin=origin) for spec in found]
    return InstalledPlugins(tuple(specs), tuple(problems))


@lru_cache(maxsize=1)
def _find_entry_points(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:  # noqa: ARG001 - where they were found
    """Those of all packages on this path: what is installed later, a process that begins later sees."""
    return tuple(sorted(entry_points(group=GROUP), key=lambda p: (p.name, p.value)))


def _load_specs(point: EntryPoint) -> Iterator[Any]:
    loaded = point.load()
    given = loaded if isinstance(loaded, ToolSpec) or not callable(loaded) else loaded()
    if isinstance(given, ToolSpec):
        yield given
    else:
        yield from given


def _check_plugin_spec(spec: object, taken: set[str]) -> None:
    """What the tests of built-in tools hold them to. Raises TypeError, ValueError."""
    if not isinstance(spec, ToolSpec):
        raise TypeError(f"{type(spec).__name__} is not a ToolSpec")
    if not _NAME.fullmatch(spec.name) or spec.name in taken:
        raise ValueError(
            f"tool name {spec.name!r} is invalid or already in use: use lower-case letters, digits and underscores"
        )
    if clash := CARRIED & spec.arguments.model_fields.keys():
        raise ValueError(f"{spec.name} has an argument {', '.join(clash)}, which every call carries")
    if spec.risk is Risk.READ and (spec.precheck or spec.postcondition or spec.probe or spec.undo):
        raise ValueError(f"{spec.name} says how a change is checked, and that it only reads: give its risk")
    try:
        parse_arguments(spec, spec.example)
    except ToolError as error:
        raise ValueError(f"the example of {spec.name} does not validate: {error}") from None
