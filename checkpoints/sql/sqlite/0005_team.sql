-- SQLite appends its own row number to every index: `project` alone lists a team in the order of insertion.
CREATE INDEX runs_project ON runs (project);
CREATE INDEX runs_project_status ON runs (project, status);

CREATE TRIGGER runs_count_new AFTER INSERT ON runs BEGIN
    INSERT INTO run_counts (project, status, runs) VALUES (new.project, new.status, 1);
END;
CREATE TRIGGER runs_count_changed AFTER UPDATE OF status, project ON runs
WHEN old.status <> new.status OR old.project <> new.project BEGIN
    INSERT INTO run_counts (project, status, runs) VALUES (old.project, old.status, -1), (new.project, new.status, 1);
END;
CREATE TRIGGER runs_count_gone AFTER DELETE ON runs BEGIN
    INSERT INTO run_counts (project, status, runs) VALUES (old.project, old.status, -1);
END;
