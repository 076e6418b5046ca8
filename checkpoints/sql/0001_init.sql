-- Version 1. Times are RFC 3339 UTC text, money is decimal text, documents are canonical JSON text.
PRAGMA application_id = 0x6f70736c;

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

INSERT INTO meta (key, value) VALUES ('redaction_key', lower(hex(randomblob(32))));

CREATE TABLE runs (
    id                    TEXT PRIMARY KEY,
    question              TEXT NOT NULL,
    name                  TEXT,
    project               TEXT NOT NULL,
    parent                TEXT,
    parent_checkpoint     TEXT,
    forked_at_observation INTEGER,
    status                TEXT NOT NULL,
    stop_reason           TEXT,
    verdict               TEXT,
    turn                  INTEGER NOT NULL,
    node                  TEXT,
    attempt               INTEGER NOT NULL,
    pid                   INTEGER,
    host                  TEXT,
    process_start         TEXT,
    locked                TEXT,
    created               TEXT NOT NULL,
    updated               TEXT NOT NULL,
    tokens                INTEGER NOT NULL,
    cost                  TEXT NOT NULL,
    graph_revision        TEXT NOT NULL,
    app_version           TEXT NOT NULL,
    settings              TEXT NOT NULL
) STRICT;
CREATE INDEX runs_created ON runs (created);
CREATE INDEX runs_parent ON runs (parent) WHERE parent IS NOT NULL;

-- One line of the trace. `hash` = sha256 of the hash before it and this line; `event_heads` holds the last.
CREATE TABLE events (
    run        TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    ts         TEXT NOT NULL,
    type       TEXT NOT NULL,
    attempt    INTEGER NOT NULL,
    turn       INTEGER NOT NULL,
    node       TEXT NOT NULL,
    step       INTEGER NOT NULL,
    checkpoint TEXT NOT NULL,
    data       TEXT NOT NULL,
    hash       TEXT NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT;
CREATE TABLE event_heads (
    run  TEXT PRIMARY KEY,
    seq  INTEGER NOT NULL,
    hash TEXT NOT NULL
) STRICT;

-- Every record is stored once, whatever points at it. `size` counts bytes before compression.
CREATE TABLE bodies (
    sha256   TEXT PRIMARY KEY,
    size     INTEGER NOT NULL,
    left_out INTEGER NOT NULL,
    data     BLOB NOT NULL
) STRICT;

CREATE TABLE results (
    run     TEXT NOT NULL,
    call_id TEXT NOT NULL,
    fields  TEXT NOT NULL,
    body    TEXT NOT NULL,
    origin  TEXT NOT NULL,
    stored  TEXT NOT NULL,
    PRIMARY KEY (run, call_id)
) STRICT;

CREATE TABLE observations (
    run    TEXT NOT NULL,
    number INTEGER NOT NULL,
    fields TEXT NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (run, number)
) STRICT;

CREATE TABLE evidence (
    run     TEXT NOT NULL,
    number  INTEGER NOT NULL,
    fields  TEXT NOT NULL,
    body    TEXT NOT NULL,
    fetched TEXT NOT NULL,
    PRIMARY KEY (run, number)
) STRICT;

-- A question to a person (`A1` on a call or an unknown effect, `Q1` of the run) and its answer.
CREATE TABLE approvals (
    run            TEXT NOT NULL,
    id             TEXT NOT NULL,
    about          TEXT NOT NULL CHECK (about IN ('call', 'effect', 'question')),
    subject        TEXT NOT NULL,
    digest         TEXT NOT NULL,
    policy_version TEXT NOT NULL,
    document       TEXT NOT NULL,
    status         TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'denied', 'answered', 'used', 'stale')),
    requested      TEXT NOT NULL,
    answered       TEXT,
    expires        TEXT,
    answered_by    TEXT,
    via            TEXT,
    reason         TEXT NOT NULL,
    used           TEXT,
    PRIMARY KEY (run, id)
) STRICT;
CREATE INDEX approvals_pending ON approvals (run) WHERE status = 'pending';

-- A change in the outside world. `digest` covers tool, arguments and target; `key` the call id besides.
CREATE TABLE effects (
    run       TEXT NOT NULL,
    key       TEXT NOT NULL,
    call_id   TEXT NOT NULL,
    tool      TEXT NOT NULL,
    target    TEXT,
    arguments TEXT NOT NULL,
    digest    TEXT NOT NULL,
    risk      TEXT NOT NULL,
    approval  TEXT,
    repeat_of TEXT,
    attempt   INTEGER NOT NULL,
    tries     INTEGER NOT NULL CHECK (tries IN (1, 2)),
    status    TEXT NOT NULL CHECK (status IN ('started', 'done', 'failed_clean', 'unknown', 'resolved')),
    outcome   TEXT CHECK (outcome IN ('happened', 'absent')),
    result    TEXT NOT NULL,
    started   TEXT NOT NULL,
    finished  TEXT,
    verified  INTEGER,
    checked   TEXT NOT NULL,
    PRIMARY KEY (run, key)
) STRICT;
CREATE INDEX effects_digest ON effects (digest);
CREATE UNIQUE INDEX effects_approval ON effects (run, approval) WHERE approval IS NOT NULL;

-- What another process asks of a run; read before every node.
CREATE TABLE control (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    run     TEXT NOT NULL,
    kind    TEXT NOT NULL CHECK (kind IN ('pause', 'cancel', 'terminate', 'note')),
    text    TEXT NOT NULL,
    created TEXT NOT NULL
) STRICT;
CREATE INDEX control_run ON control (run);

CREATE TABLE reports (
    run      TEXT PRIMARY KEY,
    document TEXT NOT NULL,
    written  TEXT NOT NULL
) STRICT;
