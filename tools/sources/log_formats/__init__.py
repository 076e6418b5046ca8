"""Log formats: one declaration for each, recognition, times, encodings, and records of many lines.

A new format is one declaration with three example lines, in the table of its kind: `application_formats.py`, `rarer_formats.py`, `server_formats.py`
(with envelopes), or `json_formats.py`.
"""
