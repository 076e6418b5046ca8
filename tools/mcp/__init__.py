"""Tools of MCP servers: one persistent session per server; nothing that a server says is trusted."""
