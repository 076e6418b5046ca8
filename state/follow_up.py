"""What a question on an ended run starts from: the run that it is about, and what that run concluded."""

from typing import Annotated

from pydantic import Field

from opsleuth.state.base import EvidenceId, FrozenModel, Name, Text
from opsleuth.state.conclusion import Cause

MOST_CAUSES = 5
MOST_SERVICES = 8
MOST_EVIDENCE = 20


class FollowUp(FrozenModel):
    """The run that was asked about (`run`), what it was asked (`question`), and its `answer`.

    `services` are those that the follow-up question names, `evidence` is what the run's first cause rests on.
    """

    run: Name
    question: Text
    answer: Text = ""
    causes: Annotated[tuple[Cause, ...], Field(max_length=MOST_CAUSES)] = ()
    services: Annotated[tuple[Name, ...], Field(max_length=MOST_SERVICES)] = ()
    evidence: Annotated[tuple[EvidenceId, ...], Field(max_length=MOST_EVIDENCE)] = ()
