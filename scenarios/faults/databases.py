"""Faults of PostgreSQL: a bad plan, locks, sessions used up, a replica behind, a failover."""

from collections.abc import Sequence
from random import Random

from opsleuth.scenarios.faults.fault_kind import FaultAnswer, FaultKind
from opsleuth.scenarios.invented_names import invent_word
from opsleuth.scenarios.scene import Scene


def _callers_of_database(scene: Scene, database: str) -> list[str]:
    return [call.caller for call in scene.world.callers(database)]


def apply_slow_query(scene: Scene) -> FaultAnswer:
    """One statement takes far longer: a known one whose index is gone, or a new one that a release brought."""
    database = scene.database()
    amount = scene.push(database.name, "self_ms", 1.3)
    scene.push(database.name, "cpu", 0.8)
    rate = scene.rest[database.name].rps
    if scene.chance(0.5):
        app = scene.random.choice(_callers_of_database(scene, database.name))
        text = f"SELECT * FROM {invent_word(scene.random)}_items WHERE lower(label) LIKE $1 ORDER BY created_at DESC"
        scene.new_statements.append((database.name, text, 0.04 * rate, amount / 0.04))
        scene.deploy(scene.timing.onset - 60, app, "search by label", f'+    db.query("{text}", pattern)\n')
        took, kinds = amount / 0.04, ["deploy"]
    else:
        known = [s for s in scene.world.statements if s.database == database.name and s.share > 0.1]
        statement = scene.random.choice([s for s in known if s.text.startswith("SELECT")])
        scene.slower[database.name, statement.text] = took = amount / statement.share
        text, kinds = statement.text, []
        if scene.chance(0.5):
            scene.change(
                scene.timing.onset - 50,
                database.name,
                "migration",
                "drop index that no query uses",
                diff="DROP INDEX CONCURRENTLY idx_owner_state;",
            )
    scene.statement_waits[text] = {"CPU": 0.6, "IO:DataFileRead": 0.4}
    if scene.chance(0.5):  # log_min_duration_statement is off by default
        scene.say(database.name, "LOG", lambda r: _format_duration_line(r, took, text))
    return FaultAnswer(database.name, also=_callers_of_database(scene, database.name), also_kinds=kinds)


def _format_duration_line(random: Random, took: float, text: str) -> str:
    return f"duration: {took * random.uniform(0.8, 1.8):.3f} ms  execute <unnamed>: {text}"


def apply_held_locks(scene: Scene) -> FaultAnswer:
    """A transaction holds rows that everybody wants to change: updates wait, sessions pile up."""
    database = scene.database()
    amount = scene.push(database.name, "self_ms")
    scene.push(database.name, "sessions", 1.5)
    update = next(
        s for s in scene.world.statements if s.database == database.name and s.text.startswith("UPDATE")
    )
    scene.slower[database.name, update.text] = amount / update.share
    scene.statement_waits[update.text] = {"Lock:transactionid": 0.85, "Lock:tuple": 0.1, "CPU": 0.05}
    if scene.chance(0.5):  # so is log_lock_waits
        scene.say(database.name, "LOG", lambda r: _format_lock_wait_line(r, update.text))
    if scene.size >= 4:
        scene.say(
            database.name,
            "ERROR",
            lambda r: (
                f"deadlock detected. Detail: Process {r.randrange(9000, 30000)} waits for ShareLock on transaction {r.randrange(10**6, 10**7)}"
            ),
            per_minute=scene.size / 16,
        )
        scene.push(database.name, "fail", 0.3)
    return FaultAnswer(
        database.name, also=_callers_of_database(scene, database.name), also_kinds=["slow_query"]
    )


def _format_lock_wait_line(random: Random, text: str) -> str:
    process, transaction = random.randrange(9000, 30000), random.randrange(10**6, 10**7)
    return f"process {process} still waiting for ShareLock on transaction {transaction} after {random.uniform(1000, 1010):.3f} ms. Statement: {text}"


def apply_connection_leak(scene: Scene) -> FaultAnswer:
    """A client does not give its sessions back until the server has none left."""
    database = scene.database()
    users = _callers_of_database(scene, database.name)
    leaking = scene.random.choice(users)
    amount = scene.push(database.name, "connections", 1.5, scene.lasting)
    limit = round(scene.rest[database.name].connections + amount)
    for user in users:
        scene.push(f"{user}>{database.name}", "fail", 0.9)
        scene.say(
            user,
            "ERROR",
            lambda _: f'connection to "{database.name}" failed: FATAL: sorry, too many clients already',
            per_minute=scene.size / 3,
        )
    if scene.chance(0.7):
        refused = "remaining connection slots are reserved for roles with the SUPERUSER attribute"
        scene.say(database.name, "FATAL", lambda _: refused)
    status = {
        "max_connections": limit,
        "used": limit,
        "idle_in_transaction": round(amount),
        "by_client": {leaking: round(amount + 20)},
    }
    scene.object("PgStatActivity", database.name, status)
    return FaultAnswer(
        database.name, also=[leaking], alert=f"{database.name} has used all of its {limit} connections."
    )


def apply_replication_lag(scene: Scene) -> FaultAnswer:
    """A burst of writes on the primary: the replica cannot replay as fast as it gets them."""
    replica = scene.take(scene.world.with_role("replica"))
    primary = replica.name.removesuffix("-replica-1")
    scene.push(replica.name, "lag_s", 2.0, scene.growing)
    scene.push(primary, "iops", 1.0)
    scene.push(primary, "write_ms", 0.4)
    rate, table = 0.5, invent_word(scene.random)
    text = f"INSERT INTO {table}_archive SELECT * FROM {table}_events WHERE created_at < $1"
    scene.new_statements.append((primary, text, rate, 90.0 * scene.size))
    scene.say(
        replica.name,
        "ERROR",
        lambda _: (
            "canceling statement due to conflict with recovery. Detail: User query might have needed to see row versions that must be removed."
        ),
        per_minute=scene.size / 4,
    )
    scene.push(replica.name, "fail", 0.6)
    alert = f"Replica lag of {replica.name} keeps growing."
    return FaultAnswer(replica.name, also=[primary], alert=alert)


def apply_failover(scene: Scene) -> FaultAnswer:
    """The primary moves to its standby; clients keep sessions to the old one and cannot write."""
    database, onset = scene.database(), scene.timing.onset
    scene.push(database.name, "fail", 0.8)
    scene.push(database.name, "fail", 3.0, lambda t: float(0 <= t - onset < 120))
    scene.push(database.name, "connections", -2.0, lambda t: float(0 <= t - onset < 120))
    for offset, reason, text in (
        (0, "failover", f"Multi-AZ instance failover started for {database.name}."),
        (40, "availability", f"DB instance {database.name} restarted."),
        (95, "failover", f"Multi-AZ instance failover of {database.name} completed."),
    ):
        scene.event(
            reason,
            database.name,
            text,
            source="rds",
            type="Normal",
            first=onset + offset,
            at=onset + offset,
            count=1,
        )
    scene.say(
        database.name,
        "FATAL",
        lambda _: "terminating connection due to administrator command",
        per_minute=6,
        shape=lambda t: float(0 <= t - onset < 60),
    )
    for user in _callers_of_database(scene, database.name):
        scene.say(
            user,
            "ERROR",
            lambda _: "cannot execute UPDATE in a read-only transaction",
            per_minute=scene.size / 4,
        )
    return FaultAnswer(database.name, also_kinds=["crash"])


FAULTS: Sequence[FaultKind] = (
    FaultKind("slow_query", apply_slow_query, shows=["statements"]),
    FaultKind("locks", apply_held_locks, shows=["statements"]),
    FaultKind("connections", apply_connection_leak, shows=["platform"]),
    FaultKind("replication_lag", apply_replication_lag, needs=["replica"], shows=["statements"]),
    FaultKind("failover", apply_failover, shows=["platform"]),
)
