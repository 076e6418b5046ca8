"""Tokens without a tokenizer: nothing is downloaded. Errs to the high side for the text that is sent here."""

BYTES_A_TOKEN = 3
"""English prose has about 4 bytes a token, JSON with numbers 2.5 to 3.5, Chinese text 3 to 4."""


def estimate_tokens(text: str) -> int:
    """About how many tokens a text is."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)
