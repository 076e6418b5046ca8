"""The framework's stored values, read and written without the framework: msgpack of plain values."""

from opsleuth.checkpoints.errors import UnreadableStoreError
from opsleuth.state.json_types import JSON


def unpack_value(run: str, checkpoint: str, raw: bytes) -> JSON:
    """A stored value. Raises UnreadableStoreError."""
    import ormsgpack  # only where checkpoints are read

    try:
        return ormsgpack.unpackb(raw)
    except ormsgpack.MsgpackDecodeError:
        raise damaged_checkpoint_error(run, checkpoint) from None


def pack_value(value: JSON) -> bytes:
    """A value as the framework stores it."""
    import ormsgpack

    return ormsgpack.packb(value)


def damaged_checkpoint_error(run: str, checkpoint: str) -> UnreadableStoreError:
    return UnreadableStoreError(f"checkpoint {checkpoint} of {run} cannot be read: it is damaged")
