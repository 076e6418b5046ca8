-- Version 3. Many at once: who may ask, what came in and from whom, what is told to others.
-- The secret half of a token is not here: `hash` = sha256 of it.
CREATE TABLE tokens (
    id      TEXT PRIMARY KEY,
    name    TEXT NOT NULL,
    team    TEXT NOT NULL,
    roles   TEXT NOT NULL,
    hash    TEXT NOT NULL,
    created TEXT NOT NULL,
    expires TEXT,
    revoked TEXT
) STRICT;

-- One row for each run that came in over the API. `strikes` counts attempts in a row that got no node further.
CREATE TABLE intake (
    run      TEXT PRIMARY KEY,
    team     TEXT NOT NULL,
    severity INTEGER NOT NULL,
    sender   TEXT NOT NULL,
    request  TEXT,
    digest   TEXT NOT NULL,
    progress INTEGER NOT NULL,
    strikes  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX intake_request ON intake (team, request) WHERE request IS NOT NULL;

-- The row of a team is what two alerts that come at once wait for.
CREATE TABLE teams (
    name   TEXT PRIMARY KEY,
    alerts INTEGER NOT NULL
) STRICT;

-- The last run of each kind of alert, and how often it came since.
CREATE TABLE alerts (
    team        TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    run         TEXT NOT NULL,
    document    TEXT NOT NULL,
    first       TEXT NOT NULL,
    last        TEXT NOT NULL,
    count       INTEGER NOT NULL,
    PRIMARY KEY (team, fingerprint)
) STRICT;
CREATE INDEX alerts_run ON alerts (run);

-- What others are told of a run: at least once, each key once.
CREATE TABLE notices (
    run       TEXT NOT NULL,
    key       TEXT NOT NULL,
    target    TEXT NOT NULL,
    kind      TEXT NOT NULL,
    document  TEXT NOT NULL,
    created   TEXT NOT NULL,
    due       TEXT NOT NULL,
    tries     INTEGER NOT NULL,
    delivered TEXT,
    problem   TEXT NOT NULL,
    PRIMARY KEY (run, key, target)
) STRICT;
CREATE INDEX notices_due ON notices (due) WHERE delivered IS NULL;

-- Rates that all workers share: the moment, in seconds since the epoch, from which the next one is free.
CREATE TABLE gates (
    name TEXT PRIMARY KEY,
    free REAL NOT NULL
) STRICT;
