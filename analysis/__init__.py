"""Pure functions on numbers and text: no clock, no file, no network. Same input, same output."""
