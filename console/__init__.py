"""What a person sees: the live view, tables, the report."""
