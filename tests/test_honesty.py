"""The tests themselves: each can fail, looks at behaviour from outside, and says in a sentence what it is about."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).resolve().parent
FILES = sorted(path for path in TESTS.rglob("*.py") if path.name != "conftest.py")
ASSERTING = re.compile(
    r"pytest\.(raises|warns|fail)|(\w+\.)?assert\w*|_?check\w*|golden|same|(servers\.)?until|run_state_machine_as_test"
)
"""Calls that fail by themselves: pytest's own, and the helpers of these tests."""
CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time"}
BROAD = {"Exception", "BaseException"}
CATCHING = {"pytest.raises", "suppress", "contextlib.suppress"}
FOREIGN_ID = re.compile(r"^A\d{1,2}[.:,]|\b[LSWB]\d{1,2}\b(?=[.:,)]| to )")
"""Numbers of situations in a list that is not in this repository. `A1` elsewhere is the id of an approval."""

AS_MANY = {"zip", "enumerate", "pairwise", "sorted", "reversed", "product", "set", "combinations"}
"""Calls whose result has elements where their arguments have."""
CODE_WITH_PRIVATE = re.compile(r"\b(?!self\b|cls\b|os\._exit)[a-z]\w*\._[a-z]\w*")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Finding(NamedTuple):
    """A place in a test that says less than it seems to."""

    line: int
    text: str


def each_test(tree: ast.AST) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, Function) and node.name.startswith("test_"):
            yield node


def is_property(test: Function) -> bool:
    """Whether Hypothesis makes its inputs: an empty collection is then one case among many."""
    return any("given" in ast.unparse(decorator) for decorator in test.decorator_list)


def is_never_empty(items: ast.expr, function: ast.AST) -> bool:
    """A literal, a constant, `nonempty(...)`, or what another assertion of the same function mentions."""
    if isinstance(items, ast.Call) and isinstance(items.func, ast.Name | ast.Attribute):
        name = ast.unparse(items.func)
        if name == "nonempty":
            return True
        if name == "range":
            return True
        if name in AS_MANY:
            return any(is_never_empty(part, function) for part in items.args)
        if isinstance(items.func, ast.Attribute) and items.func.attr in ("items", "values", "keys"):
            return is_never_empty(items.func.value, function)
    if isinstance(items, ast.Starred):
        return is_never_empty(items.value, function)
    if isinstance(items, ast.List | ast.Tuple | ast.Set | ast.Dict):
        return True
    if isinstance(items, ast.Name) and items.id.isupper():
        return True
    wanted = ast.unparse(items)
    others = (node for node in ast.walk(function) if isinstance(node, ast.Assert))
    return any(wanted in ast.unparse(other.test) and not _is_all(other.test) for other in others)


def _is_all(test: ast.expr) -> bool:
    return isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "all"


def find_vacuous_alls(tree: ast.AST) -> Iterator[Finding]:
    for function in (node for node in ast.walk(tree) if isinstance(node, Function) and not is_property(node)):
        for node in ast.walk(function):
            if not isinstance(node, ast.Assert) or not _is_all(node.test):
                continue
            over = node.test.args[0]  # type: ignore[attr-defined]
            items = over.generators[0].iter if isinstance(over, ast.GeneratorExp | ast.ListComp) else over
            if not is_never_empty(items, function):
                yield Finding(
                    node.lineno, "`assert all(...)` holds for an empty collection: wrap it in nonempty(...)"
                )


def find_vacuous_loops(tree: ast.AST) -> Iterator[Finding]:
    for test in each_test(tree):
        loops = [node for node in ast.walk(test) if isinstance(node, ast.For | ast.AsyncFor)]
        inside = {id(part) for loop in loops for part in ast.walk(loop)}
        outside = any(fails_by_itself(part) and id(part) not in inside for part in ast.walk(test))
        if is_property(test) or outside:
            continue
        for loop in loops:
            if any(map(fails_by_itself, ast.walk(loop))) and not is_never_empty(
                loop.iter, ast.Module([], [])
            ):
                yield Finding(
                    loop.lineno, "all assertions stand in a loop that may never run: loop over nonempty(...)"
                )


def find_single_element_loops(tree: ast.AST) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.For)
            and isinstance(node.iter, ast.List | ast.Tuple)
            and len(node.iter.elts) == 1
        ):
            yield Finding(node.lineno, "a loop over one element: write it without the loop")


def find_tests_without_assertion(tree: ast.AST) -> Iterator[Finding]:
    for test in each_test(tree):
        if not any(map(fails_by_itself, ast.walk(test))):
            yield Finding(test.lineno, f"{test.name} asserts nothing: say what comes out")


def fails_by_itself(node: ast.AST) -> bool:
    return isinstance(node, ast.Assert) or (
        isinstance(node, ast.Call) and ASSERTING.fullmatch(ast.unparse(node.func)) is not None
    )


def find_choices(tree: ast.AST) -> Iterator[Finding]:
    """An exit code or status that may be one of many, or alternatives of which one is enough."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assert):
            continue
        test = node.test
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In):
            choices = test.comparators[0]
            kind = ast.unparse(test.left) + ast.unparse(choices)
            if isinstance(choices, ast.Tuple | ast.List | ast.Set) and len(choices.elts) > 2 and "code" in kind.lower():  # fmt: skip
                yield Finding(node.lineno, "more than two exit codes pass: assert the one that is right here")
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) and all(map(_is_search, test.values)):
            yield Finding(node.lineno, "either text passes: assert the one that is printed")


def _is_search(test: ast.expr) -> bool:
    """Whether this is `"text" in something`, or the bare something."""
    return isinstance(test, ast.Name) or (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In))


def _catches_all(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or ast.unparse(handler.type) in BROAD


def _reports_as_python_does(handler: ast.ExceptHandler) -> bool:
    """A process that ends with the interpreter's own traceback swallows nothing."""
    return any(
        isinstance(node, ast.Call) and ast.unparse(node.func) == "sys.excepthook"
        for node in ast.walk(handler)
    )


def find_swallowed_errors(tree: ast.AST) -> Iterator[Finding]:
    """In functions: a program of a test may end as the command line does."""
    inner = [
        node for function in ast.walk(tree) if isinstance(function, Function) for node in ast.walk(function)
    ]
    for node in inner:
        if isinstance(node, ast.ExceptHandler) and _catches_all(node) and not _reports_as_python_does(node):
            yield Finding(
                node.lineno, "every exception is caught, failed assertions too: name the expected ones"
            )
        if isinstance(node, ast.Call) and ast.unparse(node.func) in CATCHING:
            for kind in node.args:
                if ast.unparse(kind) in BROAD:
                    yield Finding(
                        node.lineno, "any exception passes, a typing mistake too: name the expected one"
                    )


def find_absolute_seconds(tree: ast.AST) -> Iterator[Finding]:
    """Seconds are right as a guard against a hang, whose name says so; a claim about growth is a ratio."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assert) or not isinstance(node.test, ast.Compare):
            continue
        sides = [node.test.left, *node.test.comparators]
        clocks = any(
            isinstance(part, ast.Call) and ast.unparse(part.func).rpartition(".")[2] in CLOCKS
            for side in sides
            for part in ast.walk(side)
        )
        named = any(
            isinstance(side, ast.Name) and side.id.lower().endswith(("seconds", "elapsed")) for side in sides
        )
        if (clocks or named) and any(isinstance(side, ast.Constant) for side in sides):
            yield Finding(
                node.lineno,
                "a literal number of seconds: compare two sizes (support/growth.py), or name a HANG_GUARD",
            )


def find_private_names(tree: ast.AST) -> Iterator[Finding]:
    """Names with an underscore, of the product or of another helper, in places where the linter does not look."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if _is_private(alias.name):
                    yield Finding(node.lineno, f"imports {alias.name}: use what is public")
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("setattr"):
            for part in node.args:
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and _is_private(part.value):
                    yield Finding(node.lineno, f"replaces {part.value}: replace what is public")
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and (found := CODE_WITH_PRIVATE.search(node.value))
        ):
            yield Finding(node.lineno, f"a program of a test reads {found[0]}: use what is public")


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def find_ids_of_other_documents(tree: ast.AST) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef | ast.Module):
            found = FOREIGN_ID.search(ast.get_docstring(node) or "")
            if found:
                name = getattr(node, "name", "the module")
                yield Finding(
                    getattr(node, "lineno", 1),
                    f"{name}: {found[0]!r} means nothing here; say what happens in a sentence",
                )


RULES: dict[str, Callable[[ast.AST], Iterator[Finding]]] = {
    name.removeprefix("find_"): rule for name, rule in sorted(globals().items()) if name.startswith("find_")
}

BREACHES = {
    "absolute_seconds": "assert perf_counter() - began < 5",
    "choices": "assert code in (0, 3, 8)",
    "ids_of_other_documents": "def test_x():\n    'W4.'\n    assert x",
    "private_names": "from opsleuth.console.running import _last_line",
    "single_element_loops": "for x in [1]:\n    assert x",
    "swallowed_errors": "def test_x():\n    with pytest.raises(Exception):\n        work()",
    "tests_without_assertion": "def test_x():\n    work()",
    "vacuous_alls": "def test_x():\n    assert all(row.ok for row in rows)",
    "vacuous_loops": "def test_x():\n    for row in rows:\n        assert row.ok",
}
"""For each rule, code that breaks it."""
HONEST = """
def test_x():
    assert rows
    assert all(row.ok for row in rows)
    for row in rows:
        assert row.ok
    assert all(row.ok for row in nonempty(more))
    assert perf_counter() - began < HANG_GUARD
    assert code in (0, 3)
    with pytest.raises(ValueError):
        work(self._own)
"""


@pytest.mark.parametrize("rule", RULES)
def test_no_test_breaks_the_rule(rule: str) -> None:
    found = [
        f"{path.relative_to(TESTS.parent)}:{finding.line}: {finding.text}"
        for path in FILES
        for finding in RULES[rule](ast.parse(path.read_text("utf-8")))
    ]
    assert len(FILES) > 1
    assert not found, "\n".join(found)


@pytest.mark.parametrize("rule", RULES)
def test_the_rule_finds_a_breach_and_nothing_in_honest_code(rule: str) -> None:
    assert list(RULES[rule](ast.parse(BREACHES[rule])))
    assert list(RULES[rule](ast.parse(HONEST))) == []
