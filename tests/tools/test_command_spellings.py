"""A rule against `*rm -rf*` is passed by no spelling of this grammar; a sample of them is run by a real shell."""

import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from nonempty import nonempty

from opsleuth.state.calls import CallGate, Risk
from opsleuth.state.results import ResultStatus
from opsleuth.tools.argument_variants import UNREADABLE, list_variants
from opsleuth.tools.policy import Policy, PolicyLayer, PolicyRule
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec

SPELLINGS = 2_100
SAMPLE = 150
NAMES = (
    "rm", "/bin/rm", "/usr/bin/../bin/rm", r"r\m", "r''m", '"rm"', "'r'm", "$'rm'", r"$'\x72m'", r"$'\162m'", "$(echo rm)",
    "`echo rm`", "${none:-rm}", "${x}", "$x", "{rm,}", "r\\\nm", "command rm", r"\rm", "${none-rm}", "r$@m", "r${1}m",
    "$(printf rm)", 'r""m',
)  # fmt: skip
OPTIONS = (
    "-rf", "-fr", "-r -f", "-f -r", "-Rf", "-rvf", "-f -v -R", "-rdvfI", "--recursive --force", "--force --recursive",
    "--rec --for", "-r --force", "--recursive -f", "-rfrf", "-r''f", r"-r\f", "$'-rf'", r"$'\x2drf'", "-{r,f}", "{-r,-f}",
    "$o", "${o}", "${none:--rf}", "-r -v -i -d -f", "--one-file-system -rf", "-f --interactive=never -r", "-rf --", '"-rf"',
)  # fmt: skip
GAPS = (" ", "  ", "\t", "${IFS}", "$IFS", " \\\n", "${IFS}${IFS}")
WRAPS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("bare", lambda c: c),
    ("sequence", lambda c: f"true; {c}"),
    ("and", lambda c: f"true && {c}"),
    ("pipe", lambda c: f"true | {c}"),
    ("subshell", lambda c: f"( {c} )"),
    ("group", lambda c: f"{{ {c}; }}"),
    ("if", lambda c: f"if true; then {c}; fi"),
    ("loop", lambda c: f"for i in 1; do {c}; done"),
    ("substitution", lambda c: f"echo $({c})"),
    ("environment", lambda c: f"env A=b {c}"),
    ("clean environment", lambda c: f"env -u NOTHING {c}"),
    ("timeout", lambda c: f"timeout 5 {c}"),
    ("nice", lambda c: f"nice -n 5 nohup {c}"),
    ("find", lambda c: f"find . -maxdepth 0 -exec {c} ';'"),
    ("function", lambda c: f"f() {{ {c}; }}; f"),
    ("background", lambda c: f"{c} & wait"),
)
QUOTING: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("sh", lambda c: f"bash -c {quote(c)}"),
    ("options", lambda c: f"bash -e -u -c {quote(c)}" if "$" not in c else f"bash -ec {quote(c)}"),
    ("nested", lambda c: f"bash -c {quote('bash -c ' + quote(c))}"),
    ("eval", lambda c: f"eval {quote(c)}"),
)


def quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def spellings(seed: int) -> Iterator[str]:
    draw = random.Random(seed)
    seen: set[str] = set()
    while len(seen) < SPELLINGS:
        text = spelling(draw)
        if text not in seen:
            seen.add(text)
            yield text


def spelling(draw: random.Random) -> str:
    name, options, gap, second = (draw.choice(group) for group in (NAMES, OPTIONS, GAPS, GAPS))
    second = "${IFS}" if second == "$IFS" else second  # the name of a variable would go on in the word
    gap = "${IFS}" if gap == "$IFS" and not options.startswith("-") else gap
    before = "${IFS}" if gap == "$IFS" else gap
    command = draw.choice(
        [f"{name}{gap}{options}{second}victim", f"{name}{before}victim {options.removesuffix(' --')}"]
    )
    if draw.random() < 0.6:
        wrapped = draw.choice(WRAPS)
        # What starts programs has no builtins, and needs words that the shell has split.
        external = wrapped[0] in ("environment", "clean environment", "timeout", "nice", "find")
        if not (external and name.startswith("command")):
            command = wrapped[1](command)
    if "$x" in name or "${x}" in name:
        command = f"x=rm; {command}"
    if options in ("$o", "${o}"):
        command = f"o=-rf; {command}"
    return draw.choice(QUOTING)[1](command) if draw.random() < 0.4 else command


async def run(_: Arguments, __: ToolContext) -> ToolResult:
    return ToolResult(record={}, headline="", status=ResultStatus.OK)


SHELL = ToolSpec(
    name="shell", purpose="Run.", not_for="Nothing.", arguments=Arguments, example={}, run=run, risk=Risk.HIGH,
    runs_commands=True,
)  # fmt: skip


def policy(word: str, pattern: str, name: str = "*") -> Policy:
    rule = PolicyRule(word=word, arguments={name: (pattern,)})  # type: ignore[arg-type]
    return Policy([PolicyLayer("operator", trusted=True, rules=(rule,))])


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_no_spelling_passes_the_rule_and_none_is_allowed_by_another() -> None:
    denies, allows = policy("deny", "*rm -rf*"), policy("allow", "echo *")
    passed = [t for t in spellings(1) if denies.rule(SHELL, {"c": t}, None).gate is not CallGate.REFUSED]
    assert passed == []
    assert all(allows.rule(SHELL, {"c": text}, None).gate is CallGate.ASK for text in nonempty(spellings(2)))


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_most_spellings_are_read_and_not_refused_for_want_of_an_answer() -> None:
    read = sum(any("rm -rf" in v for v in list_variants(t, ["*rm -rf*"])) for t in spellings(3))
    assert read / SPELLINGS > 0.95


@pytest.mark.slow
def test_a_shell_really_does_what_the_spellings_say(tmp_path: Path) -> None:
    """A sample is run: most of it removes the folder, so that the grammar tests what it is meant to test."""
    victim, removed = tmp_path / "victim", 0
    shell = shutil.which("bash")
    assert shell
    for text in list(spellings(1))[:SAMPLE]:
        (victim / "inside").mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [shell, "-c", text],
            cwd=tmp_path,
            capture_output=True,
            check=False,
            timeout=20,
            stdin=subprocess.DEVNULL,
        )
        removed += not victim.exists()
    assert removed / SAMPLE > 0.8


@pytest.mark.parametrize(
    "text",
    [
        "$UNKNOWN -rf /", "rm $UNKNOWN /", "echo cm0gLXJmIC8= | base64 -d | sh", "/bin/r? -rf /", "/b*n/rm -rf /", "xargs rm < list",
        "python3 -c 'import shutil'", "perl -e 'unlink'", "sh script.sh", ". ./script", "source script", "alias x=rm; x -rf /",
        "read x < f; $x -rf /", "sh -c 'rm $0 /' -rf", "bash <<< 'r'", "$(cat command)", "`cat command`", "printf -v x rm; $x -rf /",
        "echo / | parallel rm", "awk 'BEGIN{system(x)}'", "${x:0:1}m -rf /", "{a..z} /",
        r"$(printf '\162\155') -rf /", r"$(echo -e '\x72\x6d') -rf /", r"`printf '%sm' r` -rf /",
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_never_allowed(text: str) -> None:
    assert UNREADABLE in list_variants(text, commands=True)
    assert policy("deny", "*rm -rf*").rule(SHELL, {"c": text}, None).gate is CallGate.REFUSED
    assert policy("ask", "*rm -rf*").rule(SHELL, {"c": text}, None).gate is CallGate.ASK
    assert policy("allow", "*").rule(SHELL, {"c": text}, None).gate is CallGate.ASK


@pytest.mark.parametrize(
    "text",
    [
        "kubectl -n prod delete pod x", "kubectl --namespace=prod delete pod x", "kubectl --namespace prod --as root delete pod x",
        "/usr/bin/kubectl -v delete pod x", "kubectl.exe delete pod x", "minikube kubectl -- delete pod x", "sudo -u ops kubectl -n prod delete pod x",
        "kubectl -a -b c -d -e f -g h delete pod x", "kubectl --context x -n=y -v 9 delete --now pod x",
    ],
)  # fmt: skip
def test_options_between_a_program_and_its_words_hide_nothing(text: str) -> None:
    assert policy("deny", "*kubectl delete*").rule(SHELL, {"c": text}, None).gate is CallGate.REFUSED
    assert policy("ask", "*kubectl delete*").rule(SHELL, {"c": text}, None).gate is CallGate.ASK


def test_an_allowed_command_stays_so_with_its_options() -> None:
    text = "systemctl -q status nginx"
    assert policy("allow", "systemctl -q status *").rule(SHELL, {"c": text}, None).gate is CallGate.FREE
    assert policy("deny", "*kubectl delete*").rule(SHELL, {"c": text}, None).gate is CallGate.ASK


@pytest.mark.parametrize(
    "text",
    [
        "kubectl get pods -n shop",
        "df -h /",
        "systemctl status nginx",
        "ls -la --color=never",
        "git log -n 5",
        "rm -r old",
        "rm -f x",
    ],
)
def test_harmless_commands_are_read_as_they_are(text: str) -> None:
    assert UNREADABLE not in list_variants(text, ["*rm -rf*"], commands=True)
    assert policy("deny", "*rm -rf*").rule(SHELL, {"c": text}, None).gate is CallGate.ASK
    assert policy("allow", "*").rule(SHELL, {"c": text}, None).gate is CallGate.FREE


@pytest.mark.parametrize("value", [0, 0.0, "0", "0.0", "-0", "+0", "00", "0e3", [0], {"n": 0.0}])
@pytest.mark.parametrize("pattern", ["0", "0.0", "00"])
def test_numbers_in_rules_match_numbers_however_they_are_written(value: object, pattern: str) -> None:
    assert policy("deny", pattern, "n").rule(SHELL, {"n": value}, None).gate is CallGate.REFUSED
    assert policy("deny", "10", "n").rule(SHELL, {"n": value}, None).gate is CallGate.ASK
