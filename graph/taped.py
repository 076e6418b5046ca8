"""The executor of a run that is recorded, or that hears a recording instead of its tools."""

from dataclasses import dataclass

from opsleuth.models.tape import Diverged, Tape
from opsleuth.state.calls import Call, ResultStatus
from opsleuth.tools.executor import Executor, Part
from opsleuth.tools.spec import CallResult, ToolContext


@dataclass(slots=True, kw_only=True)
class TapedExecutor(Executor):
    """Records every result; a replay runs no tool at all, so that no effect happens again."""

    tape: Tape

    async def run(
        self, call: Call, context: ToolContext, *, part: Part = "run", seconds_left: float | None = None
    ) -> CallResult:
        if self.tape.replays:
            return self._replayed(call, part)
        result = await Executor.run(self, call, context, part=part, seconds_left=seconds_left)
        if result.status is not ResultStatus.CANCELED:
            self.tape.note(call, part, result)
        return result

    def _replayed(self, call: Call, part: str) -> CallResult:
        try:
            return self.tape.result(call, part)
        except Diverged as error:
            text = str(error)
            return CallResult(call.id, ResultStatus.INTERNAL, {"error": text}, text[:300], tries=0)
