"""The executor of a run that is recorded, or that replays a recording instead of its tools."""

from dataclasses import dataclass

from opsleuth.state.calls import Call, ResultStatus
from opsleuth.tools.executor import Executor, Part, breaker_key
from opsleuth.tools.spec import CallResult, ToolContext
from opsleuth.tools.tape import ReplayDivergedError, Tape


@dataclass(slots=True, kw_only=True)
class TapedExecutor(Executor):
    """Records every result; a replay runs no tool at all, so that no effect happens again."""

    tape: Tape

    @property
    def is_replaying(self) -> bool:
        return self.tape.replays

    async def run(
        self, call: Call, context: ToolContext, *, part: Part = "run", seconds_left: float | None = None
    ) -> CallResult:
        if self.tape.replays:
            result = self._replayed(call, part)
            if result.tries and part == "run" and (spec := self.toolbox.known(call.tool)):
                # a tool that failed too often leaves the offer as it did when this was recorded
                self.breaker.record(breaker_key(spec, context.sources), result.status, result.headline[:200])
            return result
        result = await Executor.run(self, call, context, part=part, seconds_left=seconds_left)
        if result.status is not ResultStatus.CANCELED:
            self.tape.note(call, part, result)
        return result

    def _replayed(self, call: Call, part: str) -> CallResult:
        try:
            return self.tape.result(call, part)
        except ReplayDivergedError as error:
            return CallResult.not_run(call.id, ResultStatus.INTERNAL, str(error))
