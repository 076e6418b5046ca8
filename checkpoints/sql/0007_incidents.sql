-- Version 7. What ended incidents are known by: one row for each run, and the terms by which an incident that comes back is found.
-- `began` is when the incident began, `document` what was found and what helped, `judged` a person's word on it, `cause`
-- and `helped` what that person says it was and what helped.
CREATE TABLE incidents (
    run       TEXT PRIMARY KEY,
    project   TEXT NOT NULL,
    began     TEXT NOT NULL,
    document  TEXT NOT NULL,
    judged    TEXT CHECK (judged IN ('right', 'wrong')),
    cause     TEXT,
    helped    TEXT,
    judged_by TEXT,
    judged_at TEXT
) STRICT;

CREATE TABLE incident_terms (
    project TEXT NOT NULL,
    term    TEXT NOT NULL,
    began   TEXT NOT NULL,
    run     TEXT NOT NULL,
    PRIMARY KEY (project, term, began, run)
) STRICT;
CREATE INDEX incident_terms_run ON incident_terms (run);
