"""Measures the shape of the code: names, import cycles, lines, and how often the linter is silenced.

Run: python benchmarks/structure.py [--json | --sample N [--seed S] | --keep [--allow-rise]]

`--sample` prints random functions to read. `--keep` lowers the figures that tests/test_structure.py holds, in
tests/structure.json, to those of today; it refuses where one rose, unless `--allow-rise` is given.
A room is a top-level folder that is linked under src/opsleuth. A cycle is a strongly connected component of the
modules, over all their imports: at the top, inside functions, under TYPE_CHECKING, and of the packages they stand in.
"""

import argparse
import ast
import json
import random
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent
KEPT = TOP / "tests" / "structure.json"
GLOSSARY = TOP / "docs" / "glossary.md"
PACKAGE = "opsleuth"
MOST_LINES_OF_FILE = 400
MOST_LINES_OF_FUNCTION = 80
SKIPPED_FOLDERS = {"src", "build", "dist"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class SourceFile:
    """A Python file of a room: its path from the top folder, and its name as a module."""

    path: str
    module: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @property
    def room(self) -> str:
        return self.path.split("/")[0]

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def is_package(self) -> bool:
        return self.path.endswith("/__init__.py")


def find_rooms(top: Path = TOP) -> list[str]:
    """The top-level folders that are linked into the package."""
    return sorted(p.name for p in (top / "src" / PACKAGE).iterdir() if p.is_symlink() and p.is_dir())


def read_rooms(top: Path = TOP) -> list[SourceFile]:
    """All files of the rooms, and the modules beside them (cli.py, __main__.py)."""
    found = [
        (path, path.relative_to(top))
        for room in find_rooms(top)
        for path in sorted((top / room).rglob("*.py"))
    ]
    for path in sorted((top / "src" / PACKAGE).glob("*.py")):
        found += [(path, Path(path.name) if path.is_symlink() else path.relative_to(top))]
    return [
        SourceFile(relative.as_posix(), name_module(relative), path.read_text()) for path, relative in found
    ]


def name_module(path: Path) -> str:
    """`graph/build.py` is opsleuth.graph.build, `graph/__init__.py` opsleuth.graph."""
    parts = [part for part in path.with_suffix("").parts if part not in {"src", PACKAGE, "__init__"}]
    return ".".join([PACKAGE, *parts])


def split_words(name: str) -> list[str]:
    """The words of a name in lower case: `_ReadPods`, `read_pods` and `READ_PODS` are read and pods."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+", name)
    return [part.lower() for part in parts]


# Names


def module_functions(file: SourceFile) -> list[Function]:
    return [node for node in file.tree.body if isinstance(node, Function)]


def is_one_word(name: str) -> bool:
    return "_" not in name.strip("_")


def count_one_word_functions(files: Iterable[SourceFile]) -> dict[str, tuple[int, int]]:
    """By room: (functions of one word, all functions), module level only."""
    counts: dict[str, tuple[int, int]] = {}
    for file in files:
        if file.room.endswith(".py") or file.room == "src":
            continue
        names = [function.name for function in module_functions(file)]
        one, every = counts.get(file.room, (0, 0))
        counts[file.room] = (one + sum(map(is_one_word, names)), every + len(names))
    return dict(sorted(counts.items()))


def find_classes(files: Iterable[SourceFile]) -> dict[str, list[str]]:
    """Class name to the files that define it."""
    places: dict[str, set[str]] = defaultdict(set)
    for file in files:
        for node in ast.walk(file.tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].add(file.path)
    return {name: sorted(paths) for name, paths in sorted(places.items())}


def find_repeated_classes(files: Iterable[SourceFile]) -> dict[str, list[str]]:
    """Class names that more than one file defines, with these files."""
    return {name: paths for name, paths in find_classes(files).items() if len(paths) > 1}


def find_misnamed_exceptions(files: Iterable[SourceFile]) -> list[str]:
    """`path:Name` of each exception class whose name does not end in Error."""
    classes = [
        (file, node) for file in files for node in ast.walk(file.tree) if isinstance(node, ast.ClassDef)
    ]
    known: set[str] = set()
    size = -1
    while size != len(known):
        size = len(known)
        known |= {node.name for _, node in classes if any(_is_exception(base, known) for base in node.bases)}
    return sorted(
        f"{file.path}:{node.name}"
        for file, node in classes
        if node.name in known and not node.name.endswith("Error")
    )


def _is_exception(base: ast.expr, known: Collection[str]) -> bool:
    name = _last_name(base)
    return name in known or name.endswith(("Error", "Exception"))


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def find_public_names(file: SourceFile) -> Iterator[str]:
    """Names without a leading underscore that a module defines at its top: functions, classes, constants."""
    for node in file.tree.body:
        if isinstance(node, Function | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
        else:
            continue
        yield from (name for name in names if not name.startswith("_"))


# Imports


def read_imports(file: SourceFile, modules: Mapping[str, SourceFile]) -> set[str]:
    """The project's modules that a file imports anywhere, with the packages that are run on the way.

    The packages that a module stands in count only where it takes a name out of them: they are being run already.
    """
    found: set[str] = set()
    taken: set[str] = set()
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Import):
            found |= {prefix for alias in node.names for prefix in _prefixes(alias.name)}
        elif isinstance(node, ast.ImportFrom):
            base = _resolve_relative(file, node)
            names = [f"{base}.{alias.name}" for alias in node.names]
            found |= {*_prefixes(base), *names}
            taken |= {base for name in names if name not in modules}
    around = set(_prefixes(file.module)[:-1])
    return ((found - around) | taken).intersection(modules) - {file.module}


def _resolve_relative(file: SourceFile, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = file.module.split(".")
    kept = parts[: len(parts) - node.level + (1 if file.is_package else 0)]
    return ".".join([*kept, *([node.module] if node.module else [])])


def _prefixes(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts) + 1)]


def find_cycles(files: Sequence[SourceFile]) -> list[list[str]]:
    """The strongly connected components of more than one module."""
    modules = {file.module: file for file in files}
    graph = {name: read_imports(file, modules) for name, file in modules.items()}
    reached = {name: _find_reachable(name, graph) for name in graph}
    parts = {frozenset(other for other in reached[name] if name in reached[other]) for name in graph}
    return sorted(sorted(part) for part in parts if part)


def _find_reachable(start: str, graph: Mapping[str, Collection[str]]) -> set[str]:
    """What `start` imports, directly or through others; itself only where it lies on a cycle."""
    reached: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += graph[name]
    return reached


# Lines and comments


def find_project_files(top: Path = TOP) -> list[Path]:
    """All Python files of the project, each once: not through the links, not in hidden or built folders."""
    return [
        path
        for path in sorted(top.rglob("*.py"))
        if not any(
            part.startswith(".") or part in SKIPPED_FOLDERS or part.endswith(".egg-info")
            for part in path.relative_to(top).parts[:-1]
        )
    ] + sorted(path for path in (top / "src" / PACKAGE).glob("*.py") if not path.is_symlink())


def count_silenced(top: Path = TOP) -> dict[str, int]:
    """By rule: comments that silence the linter, in all Python files of the project."""
    counts: dict[str, int] = defaultdict(int)
    for path in find_project_files(top):
        with path.open("rb") as stream:
            for token in tokenize.tokenize(stream.readline):
                if token.type == tokenize.COMMENT and (
                    match := re.search(r"\bnoqa\b:?\s*([A-Z]+[0-9]+)?", token.string)
                ):
                    counts[match[1] or "all rules"] += 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def functions_of(file: SourceFile) -> Iterator[Function]:
    return (node for node in ast.walk(file.tree) if isinstance(node, Function))


def count_function_lines(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def count_lines(files: Iterable[SourceFile]) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for file in files:
        counts[file.room] += file.lines
    return dict(sorted(counts.items()))


# The glossary


def read_glossary(path: Path = GLOSSARY) -> list[tuple[str, str, list[str]]]:
    """Term, meaning, and the words that are not used for it, of each row of the table."""
    rows = [
        line.strip().strip("|").split("|") for line in path.read_text().splitlines() if line.startswith("|")
    ]
    cells = [[cell.strip() for cell in row] for row in rows[2:]]
    return [(term, meaning, re.findall(r"`([^`]+)`", words)) for term, meaning, words in cells]


def find_words_against_glossary(
    files: Iterable[SourceFile], glossary: Path = GLOSSARY
) -> dict[str, list[str]]:
    """Each word that the glossary replaces by a term, with the public names that hold it, as `path:name`."""
    avoided = {word for _, _, words in read_glossary(glossary) for word in words}
    found: dict[str, list[str]] = defaultdict(list)
    for file in files:
        for name in find_public_names(file):
            for word in avoided.intersection(split_words(name)):
                found[word].append(f"{file.path}:{name}")
    return {word: sorted(names) for word, names in sorted(found.items())}


# Reports and figures to keep


def measure(top: Path = TOP) -> dict[str, Any]:
    """All figures as one JSON document."""
    files = read_rooms(top)
    one_word = count_one_word_functions(files)
    silenced = count_silenced(top)
    return {
        "one_word_functions": {
            "total": [sum(one for one, _ in one_word.values()), sum(every for _, every in one_word.values())],
            "rooms": {room: list(counts) for room, counts in one_word.items()},
        },
        "repeated_classes": find_repeated_classes(files),
        "misnamed_exceptions": find_misnamed_exceptions(files),
        "words_against_glossary": find_words_against_glossary(files, top / GLOSSARY.relative_to(TOP)),
        "import_cycles": find_cycles(files),
        "noqa": {"total": sum(silenced.values()), "rules": silenced},
        "lines": count_lines(files),
        "long_files": {file.path: file.lines for file in files if file.lines > MOST_LINES_OF_FILE},
        "long_functions": {
            f"{file.path}:{function.name}": lines
            for file in files
            for function in functions_of(file)
            if (lines := count_function_lines(function)) > MOST_LINES_OF_FUNCTION
        },
    }


def select_kept_figures(figures: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """What may only fall, as counts by name; without paths, so that files may move."""
    return {
        "one_word_functions": {
            room: one for room, (one, _) in figures["one_word_functions"]["rooms"].items()
        },
        "repeated_classes": {name: len(paths) for name, paths in figures["repeated_classes"].items()},
        "misnamed_exceptions": dict(
            Counter(_without_path(place) for place in figures["misnamed_exceptions"])
        ),
        "words_against_glossary": dict(
            sorted(
                Counter(
                    f"{word}: {_without_path(place)}"
                    for word, places in figures["words_against_glossary"].items()
                    for place in places
                ).items()
            )
        ),
        "noqa": {"total": figures["noqa"]["total"]},
    }


def _without_path(place: str) -> str:
    return place.rpartition(":")[2]


def find_rises(
    kept: Mapping[str, Mapping[str, int]], now: Mapping[str, Mapping[str, int]]
) -> list[tuple[str, str, int, int]]:
    """Each figure that is higher than the kept one: kind, name, kept, now. What is not kept may not occur."""
    return [
        (kind, name, before, count)
        for kind, counts in now.items()
        for name, count in counts.items()
        if count > (before := kept.get(kind, {}).get(name, 0))
    ]


def keep_figures(*, allow_rise: bool) -> int:
    """Write today's figures. Returns 1 and writes nothing where one rose and may not."""
    now = select_kept_figures(measure())
    rises = find_rises(json.loads(KEPT.read_text()), now) if KEPT.exists() else []
    for kind, name, before, count in rises:
        print(f"{kind}: {name} rose from {before} to {count}")
    if rises and not allow_rise:
        print("nothing was written: lower these figures, or keep them all as they are with --allow-rise")
        return 1
    KEPT.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n")
    return 0


def print_report(figures: Mapping[str, Any]) -> None:
    one, every = figures["one_word_functions"]["total"]
    print(f"one-word function names: {one} of {every} ({one / every:.0%})")
    for room, (some, of) in figures["one_word_functions"]["rooms"].items():
        print(f"  {room:<14}{some:>5} of {of:<5} {some / max(of, 1):>5.0%} {figures['lines'][room]:>7} lines")
    print_list("class names defined in more than one file", figures["repeated_classes"])
    print_list("exceptions that do not end in Error", figures["misnamed_exceptions"])
    print_list("words against the glossary", figures["words_against_glossary"])
    print_list("import cycles", [" ".join(cycle) for cycle in figures["import_cycles"]])
    rules = figures["noqa"]["rules"]
    print(
        f"noqa comments: {figures['noqa']['total']} ({', '.join(f'{n} {rule}' for rule, n in rules.items())})"
    )
    print(f"lines of all rooms: {sum(figures['lines'].values())}")
    print_list(f"files over {MOST_LINES_OF_FILE} lines", figures["long_files"])
    print_list(f"functions over {MOST_LINES_OF_FUNCTION} lines", figures["long_functions"])


def print_list(title: str, found: Mapping[str, Any] | Sequence[str]) -> None:
    print(f"{title}: {len(found)}")
    for name in found:
        detail = found[name] if isinstance(found, Mapping) else ""
        print(f"  {name}", *([*detail] if isinstance(detail, list) else [detail]))


def print_sample(count: int, seed: int) -> None:
    """Random functions of the rooms, methods among them, with their places."""
    places = [(file, function) for file in read_rooms() for function in functions_of(file)]
    for file, function in random.Random(seed).sample(places, min(count, len(places))):
        print(f"# {file.path}:{function.lineno}")
        print(ast.get_source_segment(file.text, function), end="\n\n")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    parser.add_argument("--sample", type=int, metavar="N", help="print N random functions instead")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the sample")
    parser.add_argument(
        "--keep", action="store_true", help="lower the figures in tests/structure.json to those of today"
    )
    parser.add_argument("--allow-rise", action="store_true", help="with --keep: also where a figure rose")
    given = parser.parse_args()
    if given.keep:
        return keep_figures(allow_rise=given.allow_rise)
    if given.sample:
        print_sample(given.sample, given.seed)
    elif given.json:
        print(json.dumps(measure(), indent=1, ensure_ascii=False))
    else:
        print_report(measure())
    return 0


if __name__ == "__main__":
    sys.exit(main())
