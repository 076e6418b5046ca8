"""Tools of MCP servers: one held session for each server, and nothing that a server says is trusted."""
