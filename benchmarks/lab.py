"""The live lab's seven faults: what the offline planner names first, and how long each part takes.

    python benchmarks/lab.py [--rounds 3] [--after 20] [--only NAME] [--folder DIR]

Starts a lab, breaks it in each way, investigates with live sources (read-only), heals it, and prints a table.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from opsleuth.scenarios.lab.faults import FAULTS, LabFault

OPSLEUTH = (sys.executable, "-m", "opsleuth")


def call(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*OPSLEUTH, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )


def lab(folder: Path, *arguments: str) -> str:
    done = call(folder, "lab", *arguments)
    if done.returncode:
        raise SystemExit(f"lab {' '.join(arguments)}: {done.stderr}")
    return done.stdout + done.stderr


def investigated(folder: Path, fault: LabFault, after: float) -> dict[str, Any]:
    """Break, investigate, heal: what was named first, and the seconds of each part."""
    told = lab(folder, "fault", fault.name, "--after", str(after))
    alert = float(re.findall(r"came after (\d+)", told)[0])
    since = re.findall(r"--since (\S+)", told)[0]
    began = time.monotonic()
    done = call(folder, "--json", "--read-only", "run", "--alert", "alert.json", "--since", since)
    took = time.monotonic() - began
    healed = float(re.findall(r"after (\d+)", lab(folder, "heal"))[0])
    last = json.loads(done.stdout.splitlines()[-1])
    causes = [(c["service"], c["kind"]) for c in last["data"].get("causes", [])]
    report = json.loads(call(folder, "report", last["run"], "--format", "json").stdout)
    causes = [(c["service"], c["kind"]) for c in report["causes"]]
    return {
        "alert": alert,
        "run": took,
        "healed": healed,
        "causes": causes,
        "id": last["run"],
        "exit": done.returncode,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--after", type=float, default=20.0)
    parser.add_argument("--only")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="lab-"))
    if options.folder is None:
        lab(folder, "up", "--dir", str(folder), "--detach")
    print(
        "| fault | truth | named first | alert s | run s | well again s |\n| --- | --- | --- | --- | --- | --- |"
    )
    right = 0
    faults = [fault for fault in FAULTS.values() if options.only in (None, fault.name)]
    try:
        for _ in range(options.rounds):
            for fault in faults:
                found = investigated(folder, fault, options.after)
                first = found["causes"][0] if found["causes"] else ("-", "-")
                right += first == (fault.service, fault.kind)
                print(
                    f"| {fault.name} | {fault.service} {fault.kind} | {' '.join(first)} | {found['alert']:.0f} |"
                    f" {found['run']:.0f} | {found['healed']:.0f} |  {found['id']} {found['causes'][1:]}",
                    flush=True,
                )
    finally:
        if options.folder is None:
            lab(folder, "down")
    print(f"\n{right} of {options.rounds * len(faults)} right")


if __name__ == "__main__":
    main()
