"""Whatever a tool does, its call ends as one result, in time, and the other calls go on."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_rig import Orders, Rig, answers, context, orders

from opsleuth.state.calls import ResultStatus, Risk
from opsleuth.tools.spec import (
    CallResult,
    InvalidArgumentsError,
    NotPermittedError,
    OutcomeUnknownError,
    ToolContext,
    ToolResult,
    TransientError,
    UnavailableError,
)

HANG_GUARD = 20.0


async def hangs(_: Orders, __: ToolContext) -> ToolResult:
    await asyncio.Event().wait()
    raise AssertionError


async def run(rig: Rig, number: int = 1, seconds_left: float | None = None) -> CallResult:
    async with asyncio.timeout(HANG_GUARD):
        return await rig.executor.run(rig.call(number), context(), seconds_left=seconds_left)


def raising(*errors: BaseException | None) -> Rig:
    """A tool that raises each of `errors` in turn (None: answers), the last one for good."""
    left = list(errors)

    async def behave(arguments: Orders, ctx: ToolContext) -> ToolResult:
        error = left.pop(0) if len(left) > 1 else left[0]
        if error is not None:
            raise error
        return await answers(arguments, ctx)

    return Rig(orders(behave))


async def test_a_result_is_passed_on() -> None:
    result = await run(Rig(orders()))
    assert (result.status, result.record, result.headline) == (ResultStatus.OK, {"rows": 3}, "3 rows")
    assert (result.call_id, result.tries, result.source) == ("inv-1/t1c1", 1, "fake")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidArgumentsError("no such order"), ResultStatus.INVALID_ARGUMENTS),
        (NotPermittedError("no right to read"), ResultStatus.NOT_PERMITTED),
        (UnavailableError("down"), ResultStatus.UNAVAILABLE),
        (FileNotFoundError("gone"), ResultStatus.UNAVAILABLE),
        (ZeroDivisionError("division"), ResultStatus.INTERNAL),
        (OutcomeUnknownError("sent, no answer"), ResultStatus.UNKNOWN),
    ],
)
async def test_each_failure_has_its_class_and_is_not_retried(error: Exception, status: ResultStatus) -> None:
    rig = raising(error)
    result = await run(rig)
    assert result.status is status
    assert str(error) in result.record["error"]
    assert (result.tries, rig.sleeper.slept) == (1, [])


@pytest.mark.parametrize("error", [TransientError("503"), ConnectionResetError("reset"), TimeoutError()])
async def test_what_may_heal_is_tried_again_with_growing_pauses(error: Exception) -> None:
    rig = raising(error, error, None)
    result = await run(rig)
    assert (result.status, result.tries) == (ResultStatus.OK, 3)
    assert rig.sleeper.slept == [pytest.approx(0.2), pytest.approx(0.4)]


async def test_the_number_of_tries_is_bounded() -> None:
    result = await run(raising(TransientError("503")))
    assert (result.status, result.tries) == (ResultStatus.TRANSIENT, 3)
    assert "503 (after 3 tries)" in result.record["error"]


async def test_the_backend_says_when_to_come_again() -> None:
    rig = raising(TransientError("slow down", retry_after=3.0), None)
    await run(rig)
    assert rig.sleeper.slept == [3.0]


async def test_a_pause_longer_than_the_runs_rest_is_not_slept() -> None:
    rig = raising(TransientError("slow down", retry_after=3.0), None)
    result = await run(rig, seconds_left=2.0)
    assert (result.status, rig.sleeper.slept) == (ResultStatus.TRANSIENT, [])


async def test_a_tool_that_never_returns_is_cut_and_not_given_the_same_work_again() -> None:
    rig = Rig(orders(hangs, timeout=0.01))
    result = await run(rig)
    assert (result.status, result.tries) == (ResultStatus.TIMEOUT, 1)
    assert "0.01 s" in result.record["error"]


async def test_a_tool_that_ignores_its_cancellation_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    release = asyncio.Event()

    async def stubborn(_: Orders, __: ToolContext) -> ToolResult:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        raise AssertionError

    monkeypatch.setattr("opsleuth.tools.executor.LEAVE_AFTER", 0.01)
    result = await run(Rig(orders(stubborn, timeout=0.01)).with_limits(tries=1))
    release.set()
    assert result.status is ResultStatus.TIMEOUT


async def test_no_time_left_means_not_started() -> None:
    rig = Rig(orders(hangs))
    result = await run(rig, seconds_left=0.0)
    assert (result.status, "not started" in result.record["error"]) == (ResultStatus.TIMEOUT, True)


async def test_a_cancelled_call_ends_as_a_result_and_the_tool_is_told() -> None:
    started, told = asyncio.Event(), asyncio.Event()

    async def waits(_: Orders, __: ToolContext) -> ToolResult:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            told.set()
        raise AssertionError

    rig = Rig(orders(waits))
    task = asyncio.create_task(rig.executor.run(rig.call(), context()))
    await started.wait()
    task.cancel()
    result = await task
    assert result.status is ResultStatus.CANCELED
    assert told.is_set()


async def test_a_tool_that_cancels_itself_is_a_defect_not_a_cancellation() -> None:
    assert (await run(raising(asyncio.CancelledError()))).status is ResultStatus.INTERNAL


async def test_one_of_three_parallel_calls_raises() -> None:
    async def second_raises(arguments: Orders, ctx: ToolContext) -> ToolResult:
        if arguments.order_id == "o-2":
            raise RuntimeError("boom")
        return await answers(arguments, ctx)

    rig = Rig(orders(second_raises))
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(rig.executor.run(rig.call(n, order_id=f"o-{n}"), context())) for n in (1, 2, 3)
        ]
    statuses = [task.result().status for task in tasks]
    assert statuses == [ResultStatus.OK, ResultStatus.INTERNAL, ResultStatus.OK]


ERRORS = st.sampled_from(
    [
        None,
        TransientError("503"),
        UnavailableError("down"),
        KeyError("x"),
        asyncio.CancelledError(),
        TimeoutError(),
        MemoryError(),
    ]
)


@given(st.lists(ERRORS, min_size=1, max_size=12))
async def test_whatever_tools_do_each_call_has_its_result(errors: list[BaseException | None]) -> None:
    rig = raising(*errors)
    results = [await run(rig, number) for number in range(1, 7)]
    assert [result.call_id for result in results] == [f"inv-1/t1c{number}" for number in range(1, 7)]
    assert all(result.status.is_error == ("error" in result.record) for result in results)


async def test_three_failures_in_a_row_open_the_breaker_and_a_trial_closes_it() -> None:
    rig = raising(UnavailableError("down"), UnavailableError("down"), UnavailableError("down"), None)
    for number in (1, 2, 3):
        await run(rig, number)
    refused = await run(rig, 4)
    assert (refused.status, refused.tries) == (ResultStatus.UNAVAILABLE, 0)
    assert "was not called" in refused.record["error"]
    rig.clock.advance(61)
    assert (await run(rig, 5)).status is ResultStatus.OK
    assert (await run(rig, 6)).status is ResultStatus.OK


async def test_an_effect_that_does_not_answer_is_unknown_and_never_repeated() -> None:
    result = await run(Rig(orders(hangs, risk=Risk.HIGH, timeout=0.01)))
    assert (result.status, result.tries) == (ResultStatus.UNKNOWN, 1)


async def test_an_effect_that_was_refused_beforehand_stays_failed() -> None:
    async def refuses(_: Orders, __: ToolContext) -> ToolResult:
        raise NotPermittedError("the target refused")

    assert (await run(Rig(orders(refuses, risk=Risk.HIGH)))).status is ResultStatus.NOT_PERMITTED


@pytest.mark.parametrize("record", [{"x": object()}, {"x": float("nan")}])
async def test_a_record_that_is_no_json_is_a_defect(record: dict[str, object]) -> None:
    async def odd(_: Orders, __: ToolContext) -> ToolResult:
        return ToolResult(record=record, headline="odd")

    result = await run(Rig(orders(odd)))
    assert (result.status, result.tries) == (ResultStatus.INTERNAL, 1)


async def test_a_huge_record_keeps_head_and_tail_and_says_what_was_cut() -> None:
    async def huge(_: Orders, __: ToolContext) -> ToolResult:
        return ToolResult(record={"text": "a" + "x" * 50_000_000 + "z"}, headline="huge")

    record = (await run(Rig(orders(huge)))).record
    assert record["text"].startswith("ax")
    assert record["text"].endswith("xz")
    assert "characters cut" in record["text"]
    assert record["cut"]["bytes"] > 50_000_000
    assert len(str(record)) < 64_000


async def test_secrets_are_taken_out_of_results_and_errors() -> None:
    def redact(value: object) -> tuple[object, int]:
        if isinstance(value, dict):
            return {k: redact(v)[0] for k, v in value.items()}, 1
        return (value.replace("hunter2", "[secret]"), 1) if isinstance(value, str) else (value, 0)

    for rig in (raising(UnavailableError("password hunter2")), raising(ValueError("hunter2"))):
        rig.executor.redact = redact
        result = await run(rig)
        assert "hunter2" not in repr(result)
        assert result.redactions == 1


async def test_a_breaker_repeats_no_half_of_a_secret() -> None:
    rig = raising(UnavailableError("x" * 130 + " hunter2"))
    rig.executor.redact = lambda value: (
        (value.replace("hunter2", "[secret]"), 1) if isinstance(value, str) else (value, 0)
    )
    refused = [await run(rig, number) for number in range(1, 5)][-1]
    assert refused.tries == 0
    assert "hunt" not in refused.record["error"]


async def test_an_unknown_tool_of_a_stored_call_is_a_result() -> None:
    rig = Rig(orders())
    call = rig.call().model_copy(update={"tool": "order_find"})
    result = await rig.executor.run(call, context())
    assert result.status is ResultStatus.INVALID_ARGUMENTS
    assert "orders_find" in result.record["error"]
