"""What opsleuth says about itself."""

import platform
import sys

from opsleuth import __version__
from opsleuth.console.options import Options
from opsleuth.state.outcome import MEANING


def exit_codes(options: Options) -> int:
    """The table of exit codes."""
    if options.json:
        _json({"exit_codes": [{"code": int(code), "meaning": text} for code, text in MEANING.items()]})
    else:
        sys.stdout.writelines(f"{int(code):>3}  {text}\n" for code, text in MEANING.items())
    return 0


def version(options: Options) -> int:
    """The version, and with `-v` or `--json` those of the parts that matter in a report of a fault."""
    if not (options.json or options.verbose):
        sys.stdout.write(f"opsleuth {__version__}\n")
        return 0
    from importlib.metadata import version as installed

    parts = {"opsleuth": __version__, "python": platform.python_version(), "platform": platform.platform()}
    parts |= {
        name: installed(name) for name in ("langgraph", "langgraph-checkpoint-sqlite", "pydantic", "rich")
    }
    if options.json:
        _json(parts)
    else:
        sys.stdout.writelines(f"{name} {text}\n" for name, text in parts.items())
    return 0


def graph(form: str) -> int:
    """The loop, as the framework itself sees it."""
    from opsleuth.graph.drawing import draw

    sys.stdout.write(draw(form))
    return 0


def _json(document: object) -> None:
    from opsleuth.console.events import write_json

    write_json(sys.stdout, document)
