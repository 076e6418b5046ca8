"""Where the package under test is imported from: `src` of the checkout, or the place of an installed wheel."""

from importlib.util import find_spec
from pathlib import Path


def find_package_path() -> Path:
    """The folder on `sys.path` that holds opsleuth; the package itself is not imported."""
    spec = find_spec("opsleuth")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("opsleuth is not installed: run `make test`")
    return Path(spec.origin).parents[1]


PACKAGE_PATH = find_package_path()
