"""Times that a person writes without a zone: read in that person's zone, and said back with the zone and in UTC."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo


class SystemZone(tzinfo):
    """The zone of this machine (TZ), with the offset that it has at each moment."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None if moment is None else _as_system_time(moment).utcoffset()

    def dst(self, _: datetime | None) -> timedelta | None:
        """None: not known apart from the offset."""
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        return None if moment is None else _as_system_time(moment).tzname()

    def fromutc(self, moment: datetime) -> datetime:
        """The time of this zone, of one in UTC."""
        shown = moment.replace(tzinfo=UTC).astimezone()
        return shown.replace(tzinfo=self)


def _as_system_time(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None).astimezone()


@dataclass(frozen=True, slots=True)
class LocalTimes:
    """In which zone a time without one is read; `note` hears how each was read."""

    zone: tzinfo = field(default_factory=SystemZone)
    note: Callable[[str], None] = lambda _: None

    def read(self, text: str, wall: datetime) -> datetime:
        """The moment in UTC that a time without a zone means."""
        local = wall.replace(tzinfo=self.zone)
        moment = local.astimezone(UTC)
        self.note(describe_local_reading(text, local))
        return moment


def describe_local_reading(text: str, local: datetime) -> str:
    """`14:05 has no time zone: read as 2026-11-30 14:05 JST (+09:00), which is 2026-11-30 05:05Z`."""
    offset = local.utcoffset() or timedelta()
    if not offset:
        return f"{text} has no time zone: read as {_format_minutes(local)}Z (the local time zone is UTC)"
    name = local.tzname() or ""
    sign = local.strftime("%z")
    shown = f"{sign[:3]}:{sign[3:5]}"
    zone = f"{name} ({shown})" if name.isalpha() else shown
    return (
        f"{text} has no time zone: read as {_format_minutes(local)} {zone}, "
        f"which is {_format_minutes(local.astimezone(UTC))}Z"
    )


def _format_minutes(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}" if moment.second else f"{moment:%Y-%m-%d %H:%M}"
