"""The store on a PostgreSQL server: many machines, each run held by one of them under a fenced lease."""
