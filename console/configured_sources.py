"""The sources that the configuration files name; a project's own file counts once it is trusted."""

from dataclasses import replace

from opsleuth.configuration.config_file import load_config_layers
from opsleuth.configuration.sources import ConfiguredSources, load_configured_sources
from opsleuth.console.options import GlobalOptions
from opsleuth.state.errors import ConfigError


def no_source_error() -> ConfigError:
    """The error for a command that needs a source where none is configured."""
    files = ", ".join(str(file.path) for file in load_config_layers())
    remedy = f"name one in {files}" if files else "find what is there with opsleuth init"
    return ConfigError(
        f"no source is configured, so there is nothing to look at: {remedy}, give a recorded incident with "
        "--case DIR, or try the built-in one: opsleuth demo"
    )


def read_allowed_sources(options: GlobalOptions) -> ConfiguredSources:
    """What is configured and may be reached. Raises ConfigError, also for a project file that is not trusted."""
    found = read_configured_sources(options)
    if found.untrusted:
        raise ConfigError(
            f"{found.untrusted} names sources and is not trusted: it came with the folder, not from you. It would reach\n"
            + "".join(f"  {line}\n" for line in found.reaches)
            + "Read it, then trust it: opsleuth trust"
        )
    return found


def read_configured_sources(options: GlobalOptions) -> ConfiguredSources:
    """What is configured, whether the project's file is trusted or not: for commands that reach nothing. Raises ConfigError."""
    return load_configured_sources(load_config_layers(), options.environment)


def read_service_names(options: GlobalOptions) -> ConfiguredSources:
    """What people call the services, without any source: for a recorded incident."""
    return replace(
        load_configured_sources(load_config_layers(), options.environment, lenient=True), sources={}
    )


def read_trusted_sources(options: GlobalOptions) -> ConfiguredSources:
    """What is configured as far as it is trusted, for commands that need no source at once."""
    found = load_configured_sources(load_config_layers(), options.environment, lenient=True)
    return replace(found, sources={}, platform=None) if found.untrusted else found
