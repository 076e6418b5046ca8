"""The framework's stored values, read and written without the framework: msgpack of plain values."""

from typing import Any

from opsleuth.checkpoints.errors import Unreadable


def unpacked(run: str, checkpoint: str, raw: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """A stored value. Raises Unreadable."""
    import ormsgpack  # noqa: PLC0415 - only where checkpoints are read

    try:
        return ormsgpack.unpackb(raw)
    except ormsgpack.MsgpackDecodeError:
        raise damaged(run, checkpoint) from None


def packed(value: Any) -> bytes:  # noqa: ANN401 - any JSON value
    """A value as the framework stores it."""
    import ormsgpack  # noqa: PLC0415 - as above

    return ormsgpack.packb(value)


def damaged(run: str, checkpoint: str) -> Unreadable:
    return Unreadable(f"checkpoint {checkpoint} of {run} cannot be read: it is damaged")
