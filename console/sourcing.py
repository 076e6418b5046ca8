"""The sources of an investigation, from the configuration files; a project's own file counts once it is trusted."""

import json
import os
from dataclasses import replace
from pathlib import Path

from opsleuth.console.options import Options, folder
from opsleuth.console.reading import note, screen_of
from opsleuth.state.configfile import PROJECT_FILE, project_file
from opsleuth.state.errors import ConfigError
from opsleuth.tools.sources.config import Configured, configured

NO_SOURCE = (
    "no source is configured, so there is nothing to look at. Find what is there with opsleuth init, "
    "give a recorded incident with --case DIR, or try the built-in one: opsleuth demo"
)


def user_file() -> Path:
    return folder("XDG_CONFIG_HOME", ".config") / "config.toml"


def sources(options: Options) -> Configured:
    """What is configured for this invocation. Raises ConfigError, also for a project file that nobody trusted yet."""
    found = look(options)
    if found.project and found.reaches and not is_trusted(found):
        raise ConfigError(
            f"{found.project} names sources and is not trusted: it came with the folder, not from you. It would reach\n"
            + "".join(f"  {line}\n" for line in found.reaches)
            + "Read it, then say so: opsleuth trust"
        )
    return found


def look(options: Options) -> Configured:
    """The same, whether the project's file is trusted or not: nothing is reached by looking."""
    return configured(user_file(), project_file(Path.cwd()), options.environment)


def names(options: Options) -> Configured:
    """What people call the services, without any source: for a recorded incident."""
    found = configured(user_file(), project_file(Path.cwd()), options.environment, lenient=True)
    return replace(found, sources={})


def is_trusted(found: Configured) -> bool:
    return _trusted().get(str(found.project)) == found.digest


def trust_project(options: Options) -> int:
    """`trust`: say what the project's file would reach, and remember that its bytes may."""
    file = project_file(Path.cwd())
    if file is None:
        raise ConfigError(f"there is no {PROJECT_FILE} here or above {Path.cwd()}: opsleuth init writes one")
    found = configured(user_file(), file, options.environment, lenient=True)
    trust(file, found.digest)
    for line in found.reaches:
        screen_of(options).line(line)
    note(f"trusted {file} as it is now; after a change it is asked again")
    return 0


def trust(path: Path, digest: str) -> None:
    """Remember that the operator trusts exactly these bytes of the file."""
    kept = _book()
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = json.dumps({**_trusted(), str(path): digest}, indent=1)
    part = kept.with_suffix(f".{os.getpid()}")
    part.write_text(text + "\n", encoding="utf-8")
    part.replace(kept)


def _book() -> Path:
    return folder("XDG_STATE_HOME", ".local/state") / "trusted.json"


def _trusted() -> dict[str, str]:
    try:
        book = json.loads(_book().read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return {str(k): str(v) for k, v in book.items()} if isinstance(book, dict) else {}
