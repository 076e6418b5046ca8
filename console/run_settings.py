"""What a run is given, which model, and whether its traffic is recorded, from the options of one invocation."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opsleuth.configuration.config_file import load_config_layers
from opsleuth.configuration.folders import xdg_folder
from opsleuth.configuration.model_settings import load_model_settings
from opsleuth.console.options import GlobalOptions
from opsleuth.graph.lifecycle.first_state import RunSettings
from opsleuth.graph.lifecycle.restrictions import Restrictions
from opsleuth.graph.lifecycle.wiring import AttemptParts
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.base import to_json
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import ConfigError, UsageError
from opsleuth.state.real_paths import resolve_path
from opsleuth.tools.tape import Tape

if TYPE_CHECKING:
    from opsleuth.configuration.sources import ConfiguredSources


def build_run_settings(
    options: GlobalOptions,
    found: "ConfiguredSources | None",
    *,
    case: Path | None = None,
    platform: Mapping[str, Any] | None = None,
) -> RunSettings:
    """What every attempt of a run needs to know, so that it is given once. Raises ConfigError."""
    return RunSettings(
        case=os.path.realpath(case) if case else None,
        planner=options.planner or "auto",
        read_only=options.read_only,
        policy=str(resolve_path(options.policy)) if options.policy else None,
        model=resolve_model_for_run(options),
        environment=found.environment if found else None,
        sources=found.sources if found else {},
        aliases=found.aliases if found else {},
        platform=platform or (found.platform if found and case is None else None),
    )


def resolve_model_for_run(
    options: GlobalOptions, stored: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """The configured model as a run's settings hold it: from flags, variables, the configuration files.

    `stored` is the model of a run that goes on: it keeps what no option and no variable replaces. Raises ConfigError.
    """
    if options.planner == "offline":
        return None
    flags = {
        "profile": options.profile,
        "model": options.model,
        "mode": options.model_mode,
        "fallback": options.fallback,
    }
    settings = load_model_settings(load_config_layers(), flags=flags, stored=stored)
    if settings is None:
        return None
    for used in filter(None, (settings, settings.for_reviewer())):
        if options.max_cost is not None and used.price is None:
            raise ConfigError(describe_missing_price(used.model))
    return to_json(settings)


def describe_missing_price(model: str) -> str:
    """What to write where --max-cost has no price to count with."""
    file = xdg_folder("XDG_CONFIG_HOME", ".config") / "config.toml"
    name = json.dumps(model, ensure_ascii=False)
    return (
        f"--max-cost needs the price of {model}. Write this, with the provider's prices, to {file}:\n\n"
        f"[prices.{name}]   # US dollars for a million tokens\n"
        "input = 0.00\noutput = 0.00\ncached = 0.00   # of input that the provider had kept; may be left out\n"
        f'date = "{SystemClock().now().date().isoformat()}"   # when you looked the prices up\n\n'
        "Or limit tokens instead: --max-tokens 300000"
    )


def build_run_parts(options: GlobalOptions, redactor: Redactor) -> AttemptParts:
    """The parts of a run beside its settings: the tape, and the memory of how servers like to be asked."""
    if options.record and options.replay:
        raise UsageError("--record and --replay exclude each other: give one of them")
    tape = None
    if options.replay:
        tape = Tape.playing(options.replay)
    elif options.record:
        tape = Tape.recording(options.record, redactor)
    memory = None if tape else xdg_folder("XDG_CACHE_HOME", ".cache") / "model-modes.json"
    return AttemptParts(tape=tape, memory=memory, restrictions=restrictions_from_options(options))


def restrictions_from_options(options: GlobalOptions) -> Restrictions:
    """What these options, variables and files allow less than a run itself may do."""
    return Restrictions(options.read_only, str(resolve_path(options.policy)) if options.policy else None)
