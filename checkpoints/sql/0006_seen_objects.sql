-- Version 6. What a run saw of the objects of a cluster, for the next run to compare with: `source` is which cluster, `captured` when in
-- seconds since the epoch, `data` compressed JSON with digests by object and the content of those that had changed.
CREATE TABLE seen_objects (
    run      TEXT NOT NULL,
    source   TEXT NOT NULL,
    captured REAL NOT NULL,
    data     BLOB NOT NULL,
    PRIMARY KEY (run, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX seen_objects_source ON seen_objects (source, captured);
