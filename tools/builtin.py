"""All built-in tools in one place. A new tool: write its file, add its specs here."""

from opsleuth.tools.calculate import CALCULATE
from opsleuth.tools.changes import CHANGES
from opsleuth.tools.events import EVENTS
from opsleuth.tools.evidence import EVIDENCE
from opsleuth.tools.logs import LOGS
from opsleuth.tools.metrics import METRICS
from opsleuth.tools.objects import OBJECTS
from opsleuth.tools.patterns import PATTERNS
from opsleuth.tools.runbooks import RUNBOOKS
from opsleuth.tools.spec import ToolSpec
from opsleuth.tools.statements import STATEMENTS
from opsleuth.tools.suspects import SUSPECTS
from opsleuth.tools.timenow import TIME_NOW
from opsleuth.tools.topology import TOPOLOGY
from opsleuth.tools.traces import TRACES

BUILTIN: tuple[ToolSpec, ...] = (
    *SUSPECTS,
    *METRICS,
    *LOGS,
    *PATTERNS,
    *TRACES,
    *TOPOLOGY,
    *CHANGES,
    *EVENTS,
    *OBJECTS,
    *STATEMENTS,
    *RUNBOOKS,
    *EVIDENCE,
    *CALCULATE,
    *TIME_NOW,
)
