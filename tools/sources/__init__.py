"""One backend, one file. A source serves capabilities; it knows no other source and no tool."""
