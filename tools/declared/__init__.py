"""Tools that the operator declares in a file: what they take, what they run, and how far they are trusted."""
