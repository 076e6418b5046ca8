"""Rules: the strictest word holds, for every spelling and wrapping of a call; a broken file stops the start."""

import shlex
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsleuth.configuration.config_file import read_config_file
from opsleuth.state.calls import CallGate, Risk
from opsleuth.state.errors import ConfigError
from opsleuth.tools.policy import Policy, PolicyLayer, PolicyRule
from opsleuth.tools.policy_file import load_policy, read_policy_layer
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec


class Shell(Arguments):
    command: str


async def _run(_: Shell, __: ToolContext) -> ToolResult:
    return ToolResult(record={}, headline="")


def tool(risk: Risk = Risk.HIGH, name: str = "foreign_shell", environment: str = "production") -> ToolSpec:
    return ToolSpec(
        name=name,
        purpose="p",
        not_for="n",
        arguments=Shell,
        example={"command": "ls"},
        run=_run,
        risk=risk,
        environment=environment,
        runs_commands=True,
    )


DENY = Policy(
    [
        PolicyLayer(
            "operator",
            trusted=True,
            rules=(PolicyRule(word="deny", arguments={"command": ("rm -rf*", "*drop table*")}),),
        )
    ]
)
BAD = ["rm -rf /data", "psql -c 'drop table orders'"]
WRAPS = [
    lambda c: c,
    lambda c: f"sh -c {shlex.quote(c)}",
    lambda c: f"bash -lc {shlex.quote(c)}",
    lambda c: f"true && {c}",
    lambda c: f"{c}; echo done",
    lambda c: f"echo x | {c}",
    lambda c: f"A=1 B=2 {c}",
    lambda c: f"env A=1 {c}",
    lambda c: f"sudo -n {c}",
    lambda c: f"timeout 5 {c}",
    lambda c: f"nohup nice -n 5 {c} &",
    lambda c: f"echo $({c})",
    lambda c: f"( {c} )",
    lambda c: f"  {c}  ",
    lambda c: c.upper(),
    lambda c: c.replace(" ", "   "),
    lambda c: c.replace("rm ", "/bin/rm ").replace("psql", "/usr/bin/psql"),
    lambda c: c.replace("rm -rf", "r''m -rf"),
    lambda c: c.replace("-rf", "-fr").replace("drop", "\uff44\uff52\uff4f\uff50"),
    lambda c: c.replace("rm", "r\u200bm").replace("drop", "dr\u200bop"),
]


@settings(deadline=None)  # the machine may be busy
@given(st.sampled_from(BAD), st.lists(st.sampled_from(WRAPS), max_size=3))
def test_deny_holds_for_every_wrapped_and_respelt_form(command: str, wraps: list[object]) -> None:
    for wrap in wraps:
        command = wrap(command)  # type: ignore[operator]
    assert DENY.rule(tool(Risk.READ), {"command": command}, None).gate is CallGate.REFUSED, command


@settings(deadline=None)  # the machine may be busy
@given(
    st.sampled_from(["ls /data", "rm -r old", "psql -c 'select 1'"]),
    st.lists(st.sampled_from(WRAPS), max_size=2),
)
def test_what_is_not_denied_is_not(command: str, wraps: list[object]) -> None:
    for wrap in wraps:
        command = wrap(command)  # type: ignore[operator]
    assert DENY.rule(tool(), {"command": command}, None).gate is CallGate.ASK


def test_an_allow_needs_every_reading_to_fit() -> None:
    allow = Policy(
        [PolicyLayer("o", trusted=True, rules=(PolicyRule(word="allow", arguments={"command": ("ls*",)}),))]
    )
    assert allow.rule(tool(), {"command": "ls /data"}, None).gate is CallGate.FREE
    for command in ("ls; rm -rf /", "ls && reboot", "ls $(reboot)", "ls `reboot`", "ls | sh", "ls\nreboot"):
        assert allow.rule(tool(), {"command": command}, None).gate is CallGate.ASK, command


@pytest.mark.parametrize(
    "command",
    ["printenv", "env", "sh -c env", "kubectl get secret db -o yaml", "cat ~/.ssh/id_rsa", "cat tls.key"],
)
def test_commands_that_print_secrets_are_never_free(command: str) -> None:
    assert Policy().rule(tool(Risk.READ), {"command": command}, None).gate is CallGate.ASK


FILE = """\
[[rule]]
effect = "allow"
tool = "foreign_*"
environment = "staging"

[[rule]]
effect = "deny"
target = "*/payments"
reason = "frozen"

[[rule]]
effect = "open"
tool = "service_delete"
"""


def test_a_file_names_the_deciding_rule_and_its_line(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(FILE)
    policy = load_policy([read_config_file("operator", path)])
    call = {"command": "restart"}
    assert policy.rule(tool(environment="staging"), call, "a/b").gate is CallGate.FREE
    assert policy.rule(tool(), call, "a/b").gate is CallGate.ASK
    denied = policy.rule(tool(environment="staging"), call, "plane/Payments")
    assert denied.gate is CallGate.REFUSED
    assert "line 5" in denied.reason
    assert "frozen" in denied.reason
    assert policy.rule(tool(Risk.IRREVERSIBLE, "service_delete"), call, "a/b").gate is CallGate.ASK
    untrusted = Policy([read_policy_layer(read_config_file("project", path))])
    assert untrusted.rule(tool(environment="staging"), call, "a/b").gate is CallGate.ASK
    assert untrusted.rule(tool(Risk.IRREVERSIBLE, "service_delete"), call, "a/b").gate is CallGate.REFUSED


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[rule", "not valid TOML"),
        ('[[rule]]\neffect = "permit"', "line 1: effect is 'permit'"),
        ('[[rule]]\neffect = "deny"\ntools = "x"', "unknown tools"),
        ('[[rule]]\neffect = "open"\ntool = "service_*"', "exact name"),
        ('rule = [{ effect = "deny" }]', "of its own"),
        ('[rules]\neffect = "deny"', "unknown rules"),
        ('[[rule]]\neffect = "deny"\ntool = []', "give a pattern"),
        ('[[rule]]\neffect = "deny"\narguments = "x"', "is a table"),
    ],
)
def test_a_broken_file_stops_the_start(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says):
        load_policy([read_config_file("operator", path)])


def test_what_is_opened_for_one_target_is_open_for_no_other() -> None:
    rule = PolicyRule(
        word="open", tools=("foreign_shell",), targets=("staging/*",), environments=("staging",)
    )
    policy = Policy([PolicyLayer("operator", trusted=True, rules=(rule,))])
    staging = tool(Risk.IRREVERSIBLE, environment="staging")
    assert policy.rule(staging, {"command": "x"}, "staging/orders").gate is CallGate.ASK
    assert policy.rule(staging, {"command": "x"}, "production/orders").gate is CallGate.REFUSED
    assert policy.rule(tool(Risk.IRREVERSIBLE), {"command": "x"}, "staging/orders").gate is CallGate.REFUSED


@pytest.mark.parametrize("target", ["plane/orders", "orders", "plane/*"])
def test_an_allow_names_a_target_whole_or_by_its_last_part(target: str) -> None:
    policy = Policy([PolicyLayer("o", trusted=True, rules=(PolicyRule(word="allow", targets=(target,)),))])
    assert policy.rule(tool(), {"command": "ls"}, "plane/orders").gate is CallGate.FREE
    assert policy.rule(tool(), {"command": "ls"}, "other/payments").gate is CallGate.ASK
