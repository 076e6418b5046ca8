-- Version 4. What every other row of a run was when it was written: `digest` covers the row `key` of the table `kind`, the last seal of a row
-- counts. `seal_heads` holds the hash over all seals up to `seq`, as of the last event; -1 marks a run of an earlier version, which has none.
CREATE TABLE seals (
    run    TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    kind   TEXT NOT NULL,
    key    TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE seal_heads (
    run  TEXT PRIMARY KEY,
    seq  INTEGER NOT NULL,
    hash TEXT NOT NULL
) STRICT;
INSERT INTO seal_heads (run, seq, hash) SELECT id, -1, '' FROM runs;
