-- All code in our schema that may run at a statement of ours, as (kind, name, on what, text).
WITH space AS (SELECT oid FROM pg_namespace WHERE nspname = :schema),
class AS (SELECT * FROM pg_class WHERE relnamespace = (SELECT oid FROM space))
SELECT 'function' AS kind, proname::text AS name, CASE WHEN prosecdef OR proconfig IS NOT NULL THEN 'changed' ELSE '' END AS place, prosrc AS code
FROM pg_proc AS routine WHERE pronamespace = (SELECT oid FROM space)
AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE objid = routine.oid AND classid = 'pg_proc'::regclass AND deptype = 'e')
UNION ALL
SELECT 'trigger', tgname::text, relname::text, CASE WHEN pronamespace = (SELECT oid FROM space) THEN proname::text ELSE '' END
FROM pg_trigger JOIN class ON class.oid = tgrelid JOIN pg_proc ON pg_proc.oid = tgfoid WHERE NOT tgisinternal
UNION ALL
SELECT 'rule', rulename::text, relname::text, '' FROM pg_rewrite JOIN class ON class.oid = ev_class WHERE rulename <> '_RETURN'
UNION ALL
SELECT 'policy', polname::text, relname::text, '' FROM pg_policy JOIN class ON class.oid = polrelid
UNION ALL
SELECT 'foreign table', relname::text, '', '' FROM class WHERE relkind = 'f'
UNION ALL
SELECT 'table', heir.relname::text, class.relname::text, ''
FROM pg_inherits JOIN class ON class.oid = inhparent JOIN pg_class AS heir ON heir.oid = inhrelid WHERE class.relkind = 'r'
UNION ALL
SELECT 'operator', oprname::text, '', '' FROM pg_operator WHERE oprnamespace = (SELECT oid FROM space)
UNION ALL
SELECT 'domain', typname::text, '', '' FROM pg_type WHERE typnamespace = (SELECT oid FROM space) AND typtype = 'd'
UNION ALL
SELECT 'view', relname::text, '', pg_get_viewdef(class.oid) FROM class WHERE relkind IN ('v', 'm')
UNION ALL
SELECT 'default of', relname || '.' || attname, '', pg_get_expr(adbin, adrelid)
FROM pg_attrdef JOIN class ON class.oid = adrelid JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
UNION ALL
SELECT 'check', conname::text, '', pg_get_constraintdef(oid)
FROM pg_constraint WHERE connamespace = (SELECT oid FROM space) AND contype = 'c'
UNION ALL
SELECT 'index', relname::text, '', coalesce(pg_get_expr(indexprs, indrelid), '') || ' ' || coalesce(pg_get_expr(indpred, indrelid), '')
FROM pg_index JOIN class ON class.oid = indexrelid
ORDER BY 1, 2
