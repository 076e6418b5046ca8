"""Commands in advice that would change production, whoever wrote them: a person reads so beside each."""

import re

_QUOTED = re.compile(r"`([^`]+)`")
_KUBECTL = re.compile(
    r"\bkubectl\b(?!.*--dry-run)(?:\s+-\S+(?:\s+[\w./-]+)?)*\s+(?:rollout\s+(?:-\S+\s+\S+\s+)*(?:undo|restart|pause|resume)|apply|create|delete|"
    r"edit|patch|replace|scale|autoscale|set|annotate|label|taint|cordon|uncordon|drain|run|expose|exec|cp)\b"
)
_PROGRAMS = re.compile(
    r"\b(?:helm\s+(?:-\S+\s+(?:[\w./-]+\s+)?)*(?:rollback|upgrade|install|uninstall|delete)"
    r"|argocd\s+app\s+(?:sync|rollback|set|delete|terminate-op)|flux\s+(?:suspend|resume|reconcile|delete)"
    r"|terraform\s+(?:apply|destroy|import)|(?:docker|podman|crictl)\s+(?:restart|stop|kill|rm|run|update|exec)"
    r"|docker\s+compose\s+(?:up|down|restart|stop)|(?:systemctl|service)\s+(?:\S+\s+)?(?:re)?(?:start|stop|load|enable|disable)"
    r"|redis-cli\b.*\b(?:FLUSH\w+|DEL|SET|CONFIG\s+SET)|kill(?:all)?\s+-?\w+|reboot|shutdown)\b"
)
_SQL = re.compile(
    r"^\s*(?:CREATE|ALTER|DROP|TRUNCATE|INSERT|UPDATE|DELETE|MERGE|GRANT|REVOKE|REINDEX|VACUUM|ANALYZE|CLUSTER|KILL|CALL"
    r"|SET\s+GLOBAL|SELECT\s+pg_(?:terminate|cancel)_backend|SELECT\s+pg_reload_conf)\b",
    re.IGNORECASE,
)


def find_production_change(text: str) -> str:
    """The first command in back quotes that would change something; empty where all of them only look."""
    for found in _QUOTED.finditer(text):
        command = found[1]
        if any(pattern.search(command) for pattern in (_KUBECTL, _PROGRAMS, _SQL)):
            return command
    return ""
