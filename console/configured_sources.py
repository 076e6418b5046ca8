"""The sources of an investigation, from the configuration files; a project's own file counts once it is trusted."""

import json
from collections.abc import Iterator
from dataclasses import replace

from opsleuth.console.options import Options
from opsleuth.console.output import note, screen_of
from opsleuth.state.configfile import CONFIG, POLICY, PROJECT_FILE, ConfigFile, config_files
from opsleuth.state.errors import ConfigError
from opsleuth.state.trust import trust
from opsleuth.tools.policy_file import loosens
from opsleuth.tools.sources.config import Configured, configured, reaches


def no_source() -> ConfigError:
    """There is nothing to look at, and what to do about it."""
    files = ", ".join(str(file.path) for file in config_files())
    remedy = f"name one in {files}" if files else "find what is there with opsleuth init"
    return ConfigError(
        f"no source is configured, so there is nothing to look at: {remedy}, give a recorded incident with "
        "--case DIR, or try the built-in one: opsleuth demo"
    )


def sources(options: Options) -> Configured:
    """What is configured for this invocation. Raises ConfigError, also for a project file that nobody trusted yet."""
    found = look(options)
    if found.untrusted:
        raise ConfigError(
            f"{found.untrusted} names sources and is not trusted: it came with the folder, not from you. It would reach\n"
            + "".join(f"  {line}\n" for line in found.reaches)
            + "Read it, then say so: opsleuth trust"
        )
    return found


def look(options: Options) -> Configured:
    """The same, whether the project's file is trusted or not: nothing is reached by looking."""
    return configured(config_files(), options.environment)


def names(options: Options) -> Configured:
    """What people call the services, without any source: for a recorded incident."""
    return replace(configured(config_files(), options.environment, lenient=True), sources={})


def trusted(options: Options) -> Configured:
    """What is configured as far as it is trusted and one environment is meant, for what needs no source at once."""
    found = configured(config_files(), options.environment, lenient=True)
    return replace(found, sources={}, platform=None) if found.untrusted else found


def trust_project(options: Options) -> int:
    """`trust`: say what the project's files would reach, run and allow, and remember that their bytes may."""
    files = [file for name in (CONFIG, POLICY) for file in config_files(name) if file.layer == "project"]
    if not files:
        raise ConfigError(f"there is no {PROJECT_FILE} here or in a folder above: opsleuth init writes one")
    screen = screen_of(options)
    for file in files:
        for line in _says(file):
            screen.whole(line)
    for file in files:
        trust(file.path, file.digest)
        note(f"trusted {file.path} as it is now; after a change it is asked again")
    return 0


def _says(file: ConfigFile) -> Iterator[str]:
    """What a person should know before trusting the file. Raises ConfigError."""
    if file.path.name == POLICY:
        yield from loosens(file)
        return
    yield from reaches(file)
    for name, table in file.document.items():
        if name not in _TOLD:
            yield f"{name}: {json.dumps(table, ensure_ascii=False, default=str)}"


_TOLD = {"environments", "services", "prices"}
"""Tables that `reaches` tells of, and those that reach nothing."""
