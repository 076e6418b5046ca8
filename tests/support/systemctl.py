"""What `systemctl` does with one unit, by its manual page: state in the JSON file $UNITS. For hosts without a running systemd.

`behave` in the file says how the next restart goes: ok, fails (the unit does not come up), denied, lost (it happens, then the
program is killed), never (the program is killed before).
"""

import json
import os
import signal
import sys
import time
from pathlib import Path


def main(arguments: list[str]) -> int:
    path = Path(os.environ["UNITS"])
    units = json.loads(path.read_text())
    unit = arguments[-1]
    if "show" in arguments:
        shown = units["units"].get(
            unit, {"LoadState": "not-found", "ActiveState": "inactive", "SubState": "dead"}
        )
        print("\n".join(f"{name}={value}" for name, value in shown.items()))
        return 0
    behave = units["behave"].pop(0) if units["behave"] else "ok"
    units["asked"].append(arguments)
    if behave in ("ok", "fails", "lost"):
        failed = behave == "fails"
        units["units"][unit] |= {
            "ActiveState": "failed" if failed else "active",
            "SubState": "failed" if failed else "running",
            "InvocationID": f"{len(units['asked']):032x}",
            "InactiveExitTimestamp": f"@{int(time.time())}",
            "InactiveExitTimestampMonotonic": str(time.monotonic_ns() // 1000),
        }
    path.write_text(json.dumps(units))
    if behave in ("lost", "never"):
        os.kill(os.getpid(), signal.SIGKILL)
    if behave == "denied":
        print("Failed to restart: Access denied", file=sys.stderr)
        return 4
    if behave == "fails":
        print(
            "Job for orders.service failed because the control process exited with error code.",
            file=sys.stderr,
        )
    return 1 if behave == "fails" else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
