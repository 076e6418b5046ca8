"""A request is either exactly right or refused with the accepted form; nothing is guessed."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tool_rig import Orders, Rig, answers, orders

from opsleuth.state.calls import CallGate, CallRequest, Risk
from opsleuth.tools.arguments import WindowedArguments
from opsleuth.tools.policy import Policy, PolicyLayer
from opsleuth.tools.registry import CheckedCall, Toolbox
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.spec import InvalidArgumentsError, ToolSpec


def check(tool: str = "orders_find", **arguments: object) -> CheckedCall:
    return check_all(arguments, tool)


def check_all(arguments: dict[str, object], tool: str = "orders_find") -> CheckedCall:
    request = CallRequest.model_validate({"tool": tool, "arguments": arguments})
    return Toolbox([orders(), windowed()], RunSources()).check(request)


def windowed() -> ToolSpec:
    return ToolSpec(
        name="window_look",
        purpose="Look.",
        not_for="No.",
        arguments=WindowedArguments,
        example={},
        run=answers,
    )


def test_a_right_request_has_typed_and_canonical_arguments() -> None:
    checked = check(order_id="o-1")
    assert checked.arguments == Orders(order_id="o-1")
    assert checked.canonical == {"order_id": "o-1", "limit": 20, "share": 0.5}
    assert checked.ruling.gate is CallGate.FREE


def test_a_default_spelt_out_is_the_same_call() -> None:
    assert check(order_id="o-1", limit=20).digest == check(order_id="o-1").digest
    assert check(order_id="o-1", limit=21).digest != check(order_id="o-1").digest


def test_one_instant_written_with_another_offset_is_the_same_call() -> None:
    utc, shifted = "2024-05-01T14:00:00Z", "2024-05-01T22:00:00+08:00"
    assert check("window_look", since=utc).digest == check("window_look", since=shifted).digest


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"orderId": "o-1"}, ["no argument 'orderId'", "nearest: order_id"]),
        ({"limit": 3}, ["'order_id' is required"]),
        ({"order_id": "o-1", "limit": "20"}, ['limit="20"', "an integer, not in quotes"]),
        ({"order_id": "o-1", "limit": 1250}, ["limit=1250", "less than or equal to 200"]),
        ({"order_id": "o-1", "share": 12.5}, ["share=12.5", "less than or equal to 1"]),
        ({"order_id": 7}, ["order_id=7", "a text in quotes"]),
        ({"order_id": None}, ["order_id=null", "a text in quotes"]),
    ],
)
def test_a_wrong_argument_is_named_with_its_value_and_the_accepted_form(
    arguments: dict[str, object], said: list[str]
) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        check_all(arguments)
    for part in [*said, 'Accepted form, for example: {"order_id": "o-1"}']:
        assert part in str(caught.value)


def test_a_time_without_zone_is_refused_with_both_readings() -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        check("window_look", since="2024-05-01T14:00:00")
    assert "2024-05-01T14:00:00Z if it is UTC" in str(caught.value)
    assert "2024-05-01T06:00:00Z" in str(caught.value)


@pytest.mark.parametrize("time", ["2024-12-31", "now", "1714572000", "14:00Z", ""])
def test_what_is_no_time_is_refused(time: str) -> None:
    with pytest.raises(InvalidArgumentsError, match="RFC 3339"):
        check("window_look", until=time)


def test_a_window_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(InvalidArgumentsError, match="until must be after since"):
        check("window_look", since="2024-05-01T14:00:00Z", until="2024-05-01T13:00:00Z")


@pytest.mark.parametrize("name", ["orders find", "ordersFind", "Orders_Find", "order_find", "find"])
def test_an_unknown_tool_is_refused_with_the_nearest_name(name: str) -> None:
    with pytest.raises(InvalidArgumentsError, match="nearest: orders_find"):
        check(name)


@given(
    st.dictionaries(
        st.text(max_size=12), st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text()
    )
)
@example({})
def test_anything_is_either_accepted_as_it_is_or_refused(arguments: dict[str, object]) -> None:
    try:
        checked = check_all({"order_id": "o", **arguments})
    except InvalidArgumentsError as error:
        said = str(error)
    else:
        said = "Accepted form" if arguments.items() <= checked.canonical.items() else "changed"
    assert "Accepted form" in said


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="rename one"):
        Toolbox([orders(), orders()], RunSources())


def test_a_tool_without_a_source_is_not_offered_and_said_so() -> None:
    spec = ToolSpec(
        name="logs_look",
        purpose="p",
        not_for="n",
        arguments=Orders,
        example={},
        run=answers,
        capability="logs",
    )
    toolbox = Toolbox([spec], RunSources())
    assert toolbox.specs == ()
    assert toolbox.not_available == ("logs: no source (logs_look not offered)",)
    with pytest.raises(InvalidArgumentsError, match="no source of this run serves logs"):
        toolbox.spec("logs_look")


def test_a_read_only_run_offers_no_effects() -> None:
    assert Toolbox([orders(risk=Risk.LOW)], RunSources(), read_only=True).specs == ()


@pytest.mark.parametrize(
    ("risk", "gate"),
    [
        (Risk.READ, CallGate.FREE),
        (Risk.LOW, CallGate.FREE),
        (Risk.HIGH, CallGate.ASK),
        (Risk.IRREVERSIBLE, CallGate.REFUSED),
    ],
)
def test_each_risk_has_its_gate(risk: Risk, gate: CallGate) -> None:
    assert Policy().rule(orders(risk=risk), {}, None).gate is gate


NAME = frozenset({"orders_find"})
ANY = frozenset({"*"})


@pytest.mark.parametrize(
    ("layers", "risk", "gate"),
    [
        ([PolicyLayer("operator", trusted=True, allow=NAME)], Risk.HIGH, CallGate.FREE),
        ([PolicyLayer("project", allow=ANY)], Risk.HIGH, CallGate.ASK),
        (
            [PolicyLayer("operator", trusted=True, allow=ANY), PolicyLayer("project", ask=NAME)],
            Risk.HIGH,
            CallGate.ASK,
        ),
        (
            [PolicyLayer("operator", trusted=True, allow=ANY), PolicyLayer("project", deny=ANY)],
            Risk.READ,
            CallGate.REFUSED,
        ),
        ([PolicyLayer("operator", trusted=True, opens=NAME)], Risk.IRREVERSIBLE, CallGate.ASK),
        ([PolicyLayer("operator", trusted=True, opens=ANY)], Risk.IRREVERSIBLE, CallGate.REFUSED),
        ([PolicyLayer("operator", trusted=True, allow=NAME)], Risk.IRREVERSIBLE, CallGate.REFUSED),
        ([PolicyLayer("project", opens=NAME)], Risk.IRREVERSIBLE, CallGate.REFUSED),
        ([PolicyLayer("operator", trusted=True, opens=NAME, deny=NAME)], Risk.IRREVERSIBLE, CallGate.REFUSED),
        ([PolicyLayer("project", ask=ANY)], Risk.READ, CallGate.ASK),
    ],
)
def test_the_strictest_layer_holds_and_an_untrusted_one_only_tightens(
    layers: list[PolicyLayer], risk: Risk, gate: CallGate
) -> None:
    assert Policy(layers).rule(orders(risk=risk), {}, None).gate is gate


def test_the_version_of_a_policy_changes_with_its_rules() -> None:
    assert Policy().version == Policy().version
    assert Policy([PolicyLayer("a", deny=NAME)]).version != Policy([PolicyLayer("a", deny=ANY)]).version


def test_repeating_an_effect_on_purpose_is_asked() -> None:
    rig = Rig(orders(risk=Risk.LOW))
    request = CallRequest(tool="orders_find", arguments={"order_id": "o-1"}, repeat_of="inv-1/t1c1")
    assert rig.toolbox.check(request).ruling.gate is CallGate.ASK
    assert rig.toolbox.check(request).digest != rig.call().digest


@pytest.mark.parametrize(
    "forged",
    [
        {"risk": Risk.READ},
        {"target": "staging"},
        {"arguments": {"order_id": "o-2", "limit": 20, "share": 0.5}},
        {"arguments": {"order": 7}},
    ],
)
def test_a_stored_call_that_is_not_what_its_tool_makes_of_it_is_refused(forged: dict[str, object]) -> None:
    toolbox = Toolbox([orders(risk=Risk.LOW)], RunSources())
    request = CallRequest(tool="orders_find", arguments={"order_id": "o-1"})
    call = toolbox.check(request).call(request, call_id="r/t1c1", number=1)
    assert toolbox.ruling(call).gate is CallGate.FREE
    assert toolbox.ruling(call.model_copy(update=forged)).gate is CallGate.REFUSED
