"""All built-in tools in one place. A new tool: write its file, add its specs here."""

from opsleuth.tools.calculate import CALCULATE
from opsleuth.tools.changes import CHANGES
from opsleuth.tools.database_statements import STATEMENTS
from opsleuth.tools.events import EVENTS
from opsleuth.tools.evidence import EVIDENCE
from opsleuth.tools.log_patterns import PATTERNS
from opsleuth.tools.logs import LOGS
from opsleuth.tools.metrics import METRICS
from opsleuth.tools.metrics_relate import METRICS_RELATE
from opsleuth.tools.object_view import OBJECT_VIEW
from opsleuth.tools.objects import OBJECTS
from opsleuth.tools.rank_suspects import SUSPECTS
from opsleuth.tools.runbooks import RUNBOOKS
from opsleuth.tools.source_query import SOURCE_QUERY
from opsleuth.tools.spec import ToolSpec
from opsleuth.tools.time_now import TIME_NOW
from opsleuth.tools.topology import TOPOLOGY
from opsleuth.tools.traces import TRACES

BUILTIN: tuple[ToolSpec, ...] = (
    *SUSPECTS,
    *METRICS,
    *METRICS_RELATE,
    *LOGS,
    *PATTERNS,
    *TRACES,
    *TOPOLOGY,
    *CHANGES,
    *EVENTS,
    *OBJECTS,
    *OBJECT_VIEW,
    *STATEMENTS,
    *SOURCE_QUERY,
    *RUNBOOKS,
    *EVIDENCE,
    *CALCULATE,
    *TIME_NOW,
)
