"""Redaction: secrets and control characters are taken out before anything is stored or shown."""
