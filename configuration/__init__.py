"""Configuration: the files, the settings of each section, references to secrets, and trust."""
