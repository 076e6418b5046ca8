"""Incidents as people hand them over: what kubectl printed, events, a few log lines."""

import json
from pathlib import Path

import pytest

from opsleuth.analysis.cluster.entities import object_behind
from opsleuth.analysis.cluster.model import Cluster
from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.evals.cases import accepted_entities
from opsleuth.evals.score import fits_entity
from opsleuth.tools.sources.case_source import CaseSource

DUMPS = Path(__file__).parent / "dumps"
KEYS = json.loads((DUMPS / "answers.json").read_text())


@pytest.mark.parametrize("name", sorted(KEYS))
def test_dump_names_the_service_the_kind_and_the_object(name: str) -> None:
    recording, key = CaseSource.open(DUMPS / name).recording(), KEYS[name]
    ranking = rank_findings(recording, run_detectors(recording))
    first = ranking.suspects[0]
    assert ranking.verdict == "cause_found"
    assert first.service in key["acceptable_services"]
    assert first.kind in key["acceptable_kinds"]
    found = object_behind(first, recording, Cluster.of(recording))
    assert found is not None
    named = {"kind": found.ref.kind, "namespace": found.ref.namespace, "name": found.ref.name or None}
    assert any(fits_entity(accepted, named) for accepted in accepted_entities(key))
    assert found.show.startswith("kubectl ")
