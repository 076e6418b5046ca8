"""What a command carries out besides its own program: scripts, modules, manifests, and programs behind a wrapper.

An approval is for `sudo python3 heal.py` as the three files are now. Found by the words of the command and by their
`#!` lines; what a program reads by itself, such as its configuration, is not seen.
"""

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from opsleuth.tools.argument_variants import INTERPRETERS, SHELLS, WRAPPERS

_SUFFIXES = frozenset(
    {
        ".awk", ".bash", ".bat", ".cfg", ".cjs", ".cnf", ".conf", ".exp", ".groovy", ".gradle", ".hcl", ".ini",
        ".jar", ".j2", ".js", ".json", ".jsonnet", ".ksh", ".ldif", ".lua", ".mjs", ".mk", ".nix", ".php",
        ".pl", ".pm", ".ps1", ".py", ".pyc", ".pyz", ".rb", ".rego", ".sed", ".service", ".sh", ".sql",
        ".tcl", ".tf", ".tfplan", ".tfvars", ".tmpl", ".toml", ".ts", ".xml", ".yaml", ".yml", ".zip", ".zsh",
    }
)  # fmt: skip
"""Endings of files that say what is done. Others are data: a log that grows must not ask again forever."""
_NAMES = frozenset({"Makefile", "makefile", "GNUmakefile", "Dockerfile", "Jenkinsfile", "Rakefile", "Justfile", "justfile"})  # fmt: skip
_IMPLIED = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "gmake": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "rake": ("Rakefile", "rakefile", "Rakefile.rb"),
}
"""Files of the folder that a program takes where it is given none."""
_OPTION_VALUE = re.compile(r"-{1,2}[\w-]*=(?=.)|@(?=.)|-[A-Za-z](?=[./])")
"""Prefixes of a path within one word: `--file=x`, `@x`, `-fx`."""
_BARE_WORD = re.compile(r"[\w.+-]+")
_RUNS_OTHERS = (SHELLS | WRAPPERS) - {"find", "kubectl", "docker", "podman", "ssh", "chroot", "nsenter"}
"""Programs that start another one of this machine by its name."""


def find_program_files(argv: Sequence[str], path: str | None) -> list[str]:
    """Real paths of the files that `argv` carries out besides its program; `path` is where programs are looked for."""
    found = dict.fromkeys(os.path.realpath(file) for file in _candidate_files(argv, path))
    for file in list(found):
        found |= dict.fromkeys(find_shebang_programs(file, path))
    return sorted(found)


def find_shebang_programs(file: str, path: str | None) -> list[str]:
    """Real paths of the programs in the `#!` line of a file: the interpreter, and the one that `env` looks up."""
    try:
        with Path(file).open("rb") as opened:
            first = opened.read(256).split(b"\n")[0]
    except OSError:
        return []
    if not first.startswith(b"#!"):
        return []
    words = first[2:].decode("utf-8", "replace").split()
    programs = [words[0], *(word for word in words[1:] if _BARE_WORD.fullmatch(word))] if words else []
    return [os.path.realpath(p) for word in programs if (p := shutil.which(word, path=path))]


def _candidate_files(argv: Sequence[str], path: str | None) -> Iterator[str]:
    name = Path(argv[0]).name
    words = list(_words_of_arguments(argv[1:]))
    yield from (file for word in words for file in _files_of_word(word))
    yield from _scripts_of_interpreter(words)
    yield from (file for file in _IMPLIED.get(name, ()) if _is_file(file))
    if name in _RUNS_OTHERS:
        bare = [word for word in words if _BARE_WORD.fullmatch(word) and not word.isdigit()]
        yield from (program for word in bare if (program := shutil.which(word, path=path)))
        for word in bare:
            yield from (file for file in _IMPLIED.get(word, ()) if _is_file(file))


def _words_of_arguments(arguments: Sequence[str]) -> Iterator[str]:
    """Each argument, and its words where it is a line of several, as for `sh -c`."""
    for argument in arguments:
        yield argument
        if any(c.isspace() for c in argument):
            try:
                yield from shlex.split(argument)
            except ValueError:  # an open quote
                yield from argument.split()


def _files_of_word(word: str) -> Iterator[str]:
    place = _OPTION_VALUE.match(word)
    for text in (word, word[place.end() :] if place else ""):
        if _is_file(text) and _is_carried_out(Path(text)):
            yield text


def _scripts_of_interpreter(words: Sequence[str]) -> Iterator[str]:
    """Modules after `-m`, files after `.` or `source`, and a file right after an interpreter, whatever they are called."""
    for before, word in zip(("", *words), words, strict=False):
        if before == "-m":
            module = word.replace(".", "/")
            yield from filter(_is_file, (f"{module}.py", f"{module}/__main__.py", f"{module}/__init__.py"))
        starts = before in (".", "source") or before in SHELLS or INTERPRETERS.fullmatch(Path(before).name)
        if starts and _is_file(word):
            yield word


def _is_carried_out(path: Path) -> bool:
    return path.suffix.casefold() in _SUFFIXES or path.name in _NAMES or os.access(path, os.X_OK)


def _is_file(text: str) -> bool:
    try:
        return bool(text) and Path(text).is_file()
    except (OSError, ValueError):  # too long, or a null byte
        return False
