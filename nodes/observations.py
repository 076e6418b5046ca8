"""What the run has observed, as the nodes look at it: by number, by call, and as evidence."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opsleuth.checkpoints.evidence import EvidenceMeta
from opsleuth.checkpoints.store import Store
from opsleuth.state.calls import Call
from opsleuth.state.canonical_json import to_canonical_json
from opsleuth.state.json_types import JSON
from opsleuth.state.results import CallResult, Observation
from opsleuth.tools.registry import compute_content_digest
from opsleuth.tools.spec import EvidenceBody
from opsleuth.verification.conclusion_basis import DERIVED, EvidenceView


class ObservationCache:
    """The run's observations, read once from the store and then kept: a turn costs what is new in it."""

    def __init__(self, store: Store, run: str, signal_of: Callable[[str], str | None]) -> None:
        self._store, self._run, self._signal_of = store, run, signal_of
        self._known: list[Observation] = []
        self._views: list[EvidenceView] = []
        self._answers: dict[str, Observation] = {}
        self._shapes: Counter[str] = Counter()

    def upto(self, number: int) -> Sequence[Observation]:
        """Observations `O1` to `O<number>`, in order."""
        if len(self._known) < number:
            for observation in self._store.observations.list(self._run, number)[len(self._known) :]:
                self._keep(
                    observation,
                    compute_content_digest(observation.tool, observation.arguments, observation.target),
                )
        return self._known[:number]

    def record(self, call: Call, result: CallResult, turn: int) -> Observation:
        """Store what a call gave back as evidence and observation of the call's number; storing it again changes nothing.

        An answer from the record cites the evidence that is stored already.
        """
        observation = _build_observation(call, result, turn)
        with self._store.transaction():
            if result.from_record is None:
                self._store.evidence.put(self._run, call.number, _evidence_meta(call, result), result.record)
            self._store.observations.add(self._run, observation)
        if observation.number == len(self._known) + 1:
            self._keep(observation, call.digest)
        return observation

    def answer(self, digest: str) -> Observation | None:
        """The first successful answer to an identical call, if there is one."""
        return self._answers.get(digest)

    def times_answered(self, tool: str, arguments: Mapping[str, Any]) -> int:
        """How many calls that ask the same, whatever numbers appear in them, were answered so far."""
        return self._shapes[_call_shape(tool, arguments)]

    def views(self, number: int) -> Sequence[EvidenceView]:
        """The first `number` observations as the checks of text against evidence see them."""
        self.upto(number)
        return self._views[:number]

    def body(self, evidence: str, upto: int) -> EvidenceBody | None:
        """The stored body of an evidence id among the first `upto`, or None."""
        number = int(evidence[1:]) if evidence[1:].isdigit() else 0
        if not 1 <= number <= upto:
            return None
        seen = self.upto(upto)[number - 1]
        return EvidenceBody(id=evidence, tool=seen.tool, status=seen.status, record=seen.record)

    def _view(self, o: Observation) -> EvidenceView:
        return EvidenceView(
            id=f"E{o.number}",
            tool=o.tool,
            signal=self._signal_of(o.tool) or DERIVED,
            status=o.status,
            record=o.record,
            asked={**o.arguments, "target": o.target},
            tests=o.tests,
        )

    def _keep(self, observation: Observation, digest: str) -> None:
        self._known.append(observation)
        self._views.append(self._view(observation))
        if not observation.status.is_error:
            self._answers.setdefault(digest, observation)
            self._shapes[_call_shape(observation.tool, observation.arguments)] += 1


def _evidence_meta(call: Call, result: CallResult) -> EvidenceMeta:
    return EvidenceMeta(
        call_id=call.id,
        tool=call.tool,
        status=result.status,
        headline=result.headline,
        source=result.source,
        query=result.query,
        target=call.target,
        arguments=call.arguments,
        scanned=result.scanned,
        matched=result.matched,
        redactions=result.redactions,
    )


def _build_observation(call: Call, result: CallResult, turn: int) -> Observation:
    return Observation(
        number=call.number,
        call_id=call.id,
        turn=turn,
        tool=call.tool,
        arguments=call.arguments,
        purpose=call.purpose,
        status=result.status,
        evidence=result.from_record or f"E{call.number}",
        headline=result.headline,
        record=result.record,
        target=call.target,
        source=result.source,
        tests=call.tests,
        reason=call.reason,
    )


def _call_shape(tool: str, arguments: Mapping[str, Any]) -> str:
    """The call with every number left out: `limit=100` and `limit=101` ask the same."""
    return tool + to_canonical_json(_without_numbers(dict(arguments)))


def _without_numbers(value: JSON) -> JSON:
    if isinstance(value, Mapping):
        return {key: _without_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_numbers(item) for item in value]
    return "#" if isinstance(value, int | float) and not isinstance(value, bool) else value
