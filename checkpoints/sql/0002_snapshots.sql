-- Version 2. What models were sent and said, by content: a message that is sent again is stored once.
CREATE TABLE snapshots (
    run  TEXT NOT NULL,
    id   TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;
