"""Commands of the command line, by what they are about: parse and call. Each loads what it needs when it runs."""
