"""Faults of what a process runs on: processor, memory, disk."""

from collections.abc import Sequence
from random import Random

from opsleuth.scenarios.fault_propagation import STORAGE_BYTES
from opsleuth.scenarios.faults.fault_kind import FaultAnswer, FaultKind
from opsleuth.scenarios.scene import Scene


def apply_busy_cpu(scene: Scene) -> FaultAnswer:
    """A busy loop or a noisy neighbour: the processor is busy, answers take somewhat longer."""
    service = scene.app()
    scene.push(service.name, "cpu")
    scene.push(service.name, "self_ms", 0.5)
    scene.effects.add(service.name, "tail", 0.05 * scene.size, scene.lasting)
    return FaultAnswer(service.name)


def apply_memory_leak(scene: Scene) -> FaultAnswer:
    """A leak: memory grows until the end, collection of garbage takes more and more of the time."""
    service = scene.app()
    scene.push(service.name, "memory", 1.5, scene.growing)
    scene.push(service.name, "self_ms", 0.5, scene.growing)
    scene.effects.add(service.name, "tail", 0.08 * scene.size, scene.growing)
    if service.runtime == "jvm":
        scene.say(service.name, "INFO", _format_gc_pause, shape=scene.growing)
    return FaultAnswer(service.name)


def _format_gc_pause(random: Random) -> str:
    before = random.randrange(760, 1000)
    return (
        f"[gc] GC({random.randrange(900)}) Pause Full (G1 Compaction Pause) "
        f"{before}M->{before - random.randrange(3, 30)}M(1024M) {random.uniform(200, 900):.3f}ms"
    )


def apply_slow_disk(scene: Scene) -> FaultAnswer:
    """A slow device under a database: its queue grows, reads and writes take longer, so does every statement."""
    service = scene.database()
    for quantity in ("queue", "read_ms", "write_ms"):
        scene.push(service.name, quantity, 1.5)
    scene.push(service.name, "self_ms")
    scene.statement_waits[service.name] = {"IO:DataFileRead": 0.55, "IO:WALSync": 0.3, "CPU": 0.15}
    scene.say(service.name, "LOG", _format_checkpoint_line, per_minute=scene.size / 4)
    return FaultAnswer(service.name)


def _format_checkpoint_line(random: Random) -> str:
    sync = random.uniform(3, 30)
    return (
        f"checkpoint complete: wrote {random.randrange(900, 4000)} buffers; "
        f"write={random.uniform(60, 200):.3f} s, sync={sync:.3f} s, longest={sync * 0.7:.3f} s"
    )


def apply_full_storage(scene: Scene) -> FaultAnswer:
    """A volume that fills up: free space falls from the start of the window and is gone at the onset."""
    service, timing = scene.database(), scene.timing

    def filling(moment: float) -> float:
        return min(1.0, max(0.0, (moment - timing.start) / (timing.onset - timing.start)))

    scene.effects.add(service.name, "free_bytes", -0.55 * STORAGE_BYTES, filling)
    scene.push(service.name, "fail")
    scene.push(service.name, "write_ms", 0.5)
    scene.say(service.name, "ERROR", lambda r: _format_no_space_error(r, "base"))
    scene.event(
        "low storage",
        service.name,
        f"The free storage capacity for DB instance: {service.name} is low at 1% of the provisioned storage.",
        source="rds",
        first=timing.onset - 240,
    )
    alert = f"FreeStorageSpace on {service.name} is below 2% of the volume."
    return FaultAnswer(service.name, also_kinds=["disk"], alert=alert)


def _format_no_space_error(random: Random, folder: str) -> str:
    file = f"{folder}/{random.randrange(16384, 17000)}/{random.randrange(20000, 30000)}"
    return f'could not extend file "{file}": No space left on device. Hint: Check free disk space.'


FAULTS: Sequence[FaultKind] = (
    FaultKind("cpu", apply_busy_cpu),
    FaultKind("memory", apply_memory_leak),
    FaultKind("disk", apply_slow_disk, shows=["statements"]),
    FaultKind("storage_full", apply_full_storage, shows=["platform"]),
)
