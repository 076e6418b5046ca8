"""What a run is given, which model, and whether its traffic is recorded, from the options of one invocation."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opsleuth.checkpoints.redact import Redactor
from opsleuth.console.options import Options
from opsleuth.graph.prepare import Settings
from opsleuth.graph.wiring import Parts
from opsleuth.models.settings import configured
from opsleuth.models.tape import Tape
from opsleuth.state.base import to_json
from opsleuth.state.configfile import config_files
from opsleuth.state.errors import ConfigError, UsageError
from opsleuth.state.folders import folder

if TYPE_CHECKING:
    from opsleuth.tools.sources.config import Configured


def settings_of(
    options: Options,
    found: "Configured | None",
    *,
    case: Path | None = None,
    platform: Mapping[str, Any] | None = None,
) -> Settings:
    """What every attempt of a run needs to know, so that it is given once. Raises ConfigError."""
    return Settings(
        case=os.path.realpath(case) if case else None,
        planner=options.planner or "auto",
        read_only=options.read_only,
        policy=str(options.policy.resolve()) if options.policy else None,
        model=wanted(options),
        environment=found.environment if found else None,
        sources=found.sources if found else {},
        aliases=found.aliases if found else {},
        platform=platform or (found.platform if found and case is None else None),
    )


def wanted(options: Options) -> dict[str, Any] | None:
    """The configured model as a run's settings hold it: from flags, variables, the configuration files. Raises ConfigError."""
    if options.planner == "offline":
        return None
    flags = {
        "profile": options.profile,
        "model": options.model,
        "mode": options.model_mode,
        "fallback": options.fallback,
    }
    settings = configured(config_files(), flags=flags)
    if settings is None:
        return None
    for used in filter(None, (settings, settings.for_reviewer())):
        if options.max_cost is not None and used.price is None:
            raise ConfigError(
                f'--max-cost needs the price of {used.model}: add [prices."{used.model}"] with input, output '
                "and date to the configuration file, or limit tokens (--max-tokens)"
            )
    return to_json(settings)


def parts(options: Options, redactor: Redactor) -> Parts:
    """The parts of a run beside its settings: the tape, and the memory of how servers like to be asked."""
    if options.record and options.replay:
        raise UsageError("--record and --replay exclude each other: give one of them")
    tape = None
    if options.replay:
        tape = Tape.playing(options.replay)
    elif options.record:
        tape = Tape.recording(options.record, redactor)
    memory = None if tape else folder("XDG_CACHE_HOME", ".cache") / "model-modes.json"
    return Parts(tape=tape, memory=memory)
