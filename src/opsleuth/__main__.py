"""`python -m opsleuth` and the `opsleuth` script: both start here, and load nothing but the command line."""

from opsleuth.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
