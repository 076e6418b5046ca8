"""The framework's own conformance suite for checkpoint savers, run against ours in a file and on a server."""

from collections.abc import AsyncGenerator

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability
from langgraph.checkpoint.conformance.report import CapabilityResult

from opsleuth.checkpoints.store import Store

NOT_OFFERED = {
    Capability.PRUNE: "`store.prune` removes a run with its evidence and ledger; checkpoints alone would leave half a run",
    Capability.COPY_THREAD: "a fork is a run of its own with a parent: a copied thread would hold no ledger of what was done",
    Capability.DELETE_FOR_RUNS: "a run of ours is one thread, so `delete_thread` removes it; the framework's run ids are not kept",
}
"""Optional capabilities that our savers leave to the store, each with the reason."""

SUITE_SIZES = {
    Capability.PUT: 17,
    Capability.PUT_WRITES: 10,
    Capability.GET_TUPLE: 10,
    Capability.LIST: 16,
    Capability.DELETE_THREAD: 5,
}
"""Tests that the suite holds for each capability. A suite that runs fewer has checked less than it did."""


async def run_suite(store: Store, capability: Capability) -> CapabilityResult:
    """The suite's result for one capability of the saver that a run gets."""

    @checkpointer_test(name="opsleuth")
    async def our_saver() -> AsyncGenerator[BaseCheckpointSaver[str], None]:
        with store.saver() as saver:
            yield saver

    report = await validate(our_saver, capabilities={capability.value})
    return report.results[capability.value]


@pytest.mark.parametrize("capability", SUITE_SIZES, ids=lambda capability: capability.value)
async def test_a_saver_passes_the_conformance_suite(store: Store, capability: Capability) -> None:
    result = await run_suite(store, capability)
    assert result.failures == []
    assert result.tests_passed >= SUITE_SIZES[capability]


@pytest.mark.parametrize("capability", NOT_OFFERED, ids=lambda capability: capability.value)
async def test_a_capability_that_is_not_offered_is_refused_and_deletes_nothing(
    store: Store, capability: Capability
) -> None:
    assert not (await run_suite(store, capability)).detected, "offered now: move it to SUITE_SIZES"
    with store.saver() as saver:
        calls = {
            Capability.PRUNE: lambda: saver.aprune(["thread"]),
            Capability.COPY_THREAD: lambda: saver.acopy_thread("thread", "copy"),
            Capability.DELETE_FOR_RUNS: lambda: saver.adelete_for_runs(["run"]),
        }
        with pytest.raises(NotImplementedError):
            await calls[capability]()


def test_every_capability_of_the_suite_is_either_offered_or_explained() -> None:
    assert SUITE_SIZES.keys() | NOT_OFFERED.keys() == set(Capability)
