"""The command line: parse, call, exit code. No logic, and no heavy import at the top."""


def main() -> None:
    """Run the command line."""
