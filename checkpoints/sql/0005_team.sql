-- Version 5. The team: money by day, what became of every alert, and what is looked up at ten million stored runs.
-- `cost` in millionths of a US dollar, `day` in UTC. `warned` is 1 once people know that the budget is nearly used up.
CREATE TABLE spending (
    team   TEXT NOT NULL,
    day    TEXT NOT NULL,
    cost   INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    warned INTEGER NOT NULL,
    PRIMARY KEY (team, day)
) STRICT;

-- One row for each alert that was received. `run` is where it went, `linked` the ended run that `run` follows, `note` the request in
-- `control` that tells the run of it.
CREATE TABLE received_alerts (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    team        TEXT NOT NULL,
    received    TEXT NOT NULL,
    sender      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    name        TEXT NOT NULL,
    service     TEXT,
    severity    TEXT,
    outcome     TEXT NOT NULL,
    run         TEXT,
    linked      TEXT,
    note        INTEGER,
    reason      TEXT NOT NULL,
    document    TEXT NOT NULL
) STRICT;
CREATE INDEX received_alerts_team ON received_alerts (team, id);
CREATE INDEX received_alerts_run ON received_alerts (run) WHERE run IS NOT NULL;
CREATE INDEX received_alerts_received ON received_alerts (received);

-- What the last alert of its kind said: which service, since when, how severe; `refired` counts how often it came back after its end.
ALTER TABLE alerts ADD COLUMN service TEXT;
ALTER TABLE alerts ADD COLUMN began TEXT;
ALTER TABLE alerts ADD COLUMN severity TEXT;
ALTER TABLE alerts ADD COLUMN refired INTEGER NOT NULL DEFAULT 0;
CREATE INDEX alerts_service ON alerts (team, service, began);

-- The ended run that this one follows.
ALTER TABLE intake ADD COLUMN follows TEXT;

-- Runs that are not over are few, however many are stored.
CREATE INDEX runs_open ON runs (status, project) WHERE status IN ('queued', 'running', 'interrupted', 'waiting', 'paused');
CREATE INDEX runs_updated ON runs (updated);

-- How many runs a team has by status: changes by one, summed up when they are read, put together now and then.
CREATE TABLE run_counts (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    project TEXT NOT NULL,
    status  TEXT NOT NULL,
    runs    INTEGER NOT NULL
) STRICT;
CREATE INDEX run_counts_project ON run_counts (project, status);
INSERT INTO run_counts (project, status, runs) SELECT project, status, count(*) FROM runs GROUP BY project, status;
