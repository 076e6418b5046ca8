"""The type of JSON documents whose shape nobody checks: other programs, models and people write them."""

from typing import Any, TypeAlias

JSON: TypeAlias = Any
"""Any JSON value: None, a bool, a number, a text, or a list or dict of such values.

A recursive union would say more, but each step into a document (`row["spec"]["replicas"]`) would then need a check of
its own. Documents whose shape is known are read into models of pydantic instead.
"""
