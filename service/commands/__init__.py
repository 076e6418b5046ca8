"""The commands of the service, one file each; `COMMANDS` in `cli.py` lists them."""
