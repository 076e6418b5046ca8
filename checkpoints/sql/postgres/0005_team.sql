-- The newest runs of a team, also of one status, without reading the others.
CREATE UNIQUE INDEX runs_rowid ON runs (rowid);
CREATE INDEX runs_project ON runs (project, rowid);
CREATE INDEX runs_project_status ON runs (project, status, rowid);

UPDATE alerts SET service = document::json ->> 'service', severity = document::json ->> 'severity', began = first;

CREATE FUNCTION count_runs() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO run_counts (project, status, runs) VALUES (OLD.project, OLD.status, -1);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO run_counts (project, status, runs) VALUES (NEW.project, NEW.status, 1);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER runs_count_new AFTER INSERT OR DELETE ON runs FOR EACH ROW EXECUTE FUNCTION count_runs();
CREATE TRIGGER runs_count_changed AFTER UPDATE OF status, project ON runs FOR EACH ROW
WHEN (OLD.status IS DISTINCT FROM NEW.status OR OLD.project IS DISTINCT FROM NEW.project) EXECUTE FUNCTION count_runs();

-- As before, by the time at which a statement begins: a clock that may move within it keeps every index from being used.
CREATE OR REPLACE VIEW seen_runs AS
SELECT id, question, name, project, parent, parent_checkpoint, forked_at_observation, status, stop_reason, verdict,
       turn, node, attempt,
       CASE WHEN lost THEN NULL ELSE pid END AS pid,
       CASE WHEN lost THEN NULL ELSE host END AS host,
       CASE WHEN lost THEN NULL ELSE process_start END AS process_start,
       CASE WHEN lost THEN NULL ELSE locked END AS locked,
       created, updated, tokens, cost, graph_revision, app_version, settings, rowid
FROM (SELECT *, coalesce(leased < statement_timestamp(), FALSE) AS lost FROM runs) AS held;
