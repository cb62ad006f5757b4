"""The settings of a running queue manager, and where each of them came from.

Later ones win: the defaults here, ``lanner.toml``, the environment (``LANNER_API_PORT`` for ``api.port``),
flags of ``lanner serve``. A setting that does not exist, or has a value that cannot be meant, is an error
that names the place.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from lanner.directory.ldap.settings import LdapSettings
from lanner.manager.settings import ManagerSettings
from lanner.model.errors import InvalidPropertyError
from lanner.protocols.management.settings import ManagementSettings
from lanner.protocols.srmp.settings import SrmpSettings

__all__ = [
    "ApiConfig",
    "Config",
    "DirectoryConfig",
    "LoadedConfig",
    "LogConfig",
    "NetworkConfig",
    "load_config",
    "setting_names",
]

CONFIG_NAME = "lanner.toml"
ENVIRONMENT_PREFIX = "LANNER_"

MAX_CONFIG_BYTES = 1024 * 1024
"""Settings are written by people: a larger file is something else."""

Port = Annotated[int, Meta(ge=0, le=65_535)]
"""0 takes any free port."""


class ManagerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[manager]``: the queue manager and its limits."""

    name: str = ""
    """The computer name of a new queue manager; empty takes the machine's. An existing one keeps its name."""
    data: str = "lanner-data"
    """The directory of the store, the token and the address."""
    aliases: tuple[str, ...] = ()
    """Other names and addresses of this machine."""
    quota: int = ManagerSettings().quota
    """Kilobytes of all messages together."""
    journal_quota: int = ManagerSettings().journal_quota
    """Kilobytes of the system journal and the dead-letter queues together."""
    history_bodies: bool = False
    """Whether the history keeps the bodies of sent and arrived messages."""
    history_age: float = ManagerSettings().history_age
    """Seconds that history is kept, unless a registered reader has not confirmed it."""
    history_bytes: int = ManagerSettings().history_bytes
    """Bytes of history that are kept, likewise."""
    outcome_age: float = ManagerSettings().outcome_age
    """Seconds that the key of a send or transaction is remembered."""
    maintenance_interval: float = ManagerSettings().maintenance_interval
    """Seconds between two rounds of retention."""
    cache_bytes: int = ManagerSettings().cache_bytes
    """Bytes of recently sent messages kept in memory."""

    def settings(self) -> ManagerSettings:
        """What the manager itself takes."""
        fields = {name: getattr(self, name) for name in ManagerSettings.__struct_fields__}
        return ManagerSettings(**fields)


class ApiConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[api]``: the HTTP API for applications and administrators."""

    listen: str = "127.0.0.1"
    """The address to listen on. Beyond loopback, put TLS in front of it."""
    port: Port = 8081
    """The port to listen on."""
    lease: Annotated[float, Meta(gt=0, le=3600)] = 60.0
    """Seconds after which a transaction that its client has not touched is aborted."""


class NetworkConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[network]``: where protocols between machines listen."""

    listen: str = "127.0.0.1"
    """The address that protocols listen on."""
    names: dict[str, str] = {}
    """Addresses of machines whose names the resolver does not know, as a table."""
    srmp_port: Port = 8080
    """SRMP over HTTP."""
    srmp_https_port: Port = 8443
    """SRMP over HTTPS, if `srmp.certificate` is set."""
    binary_port: Port = 1801
    """The binary protocol."""
    discovery: bool = True
    """Whether to find directory servers, or to be found as one, where there is a directory."""
    discovery_port: Port = 1801
    """Directory discovery (UDP)."""
    rpc_port: Port = 2103
    """Remote management."""


class DirectoryConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[directory]``: where sites, links, queue managers and public queues are described."""

    file: str = ""
    """A file that describes the enterprise; empty for none."""
    file_interval: Annotated[float, Meta(gt=0, le=86_400)] = 2.0
    """Seconds after which it is looked whether the file has changed."""
    ldap_interval: Annotated[float, Meta(gt=0, le=86_400)] = 60.0
    """Seconds after which it is looked whether the directory over LDAP has changed."""


class LogConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[log]``: what is written to standard error."""

    format: Literal["human", "json"] = "human"
    """For people, or one JSON object a line."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important messages that are written."""


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings."""

    manager: ManagerConfig = ManagerConfig()
    api: ApiConfig = ApiConfig()
    network: NetworkConfig = NetworkConfig()
    srmp: SrmpSettings = SrmpSettings()
    directory: DirectoryConfig = DirectoryConfig()
    ldap: LdapSettings = LdapSettings()
    management: ManagementSettings = ManagementSettings()
    log: LogConfig = LogConfig()

    @property
    def data(self) -> Path:
        """The data directory."""
        return Path(self.manager.data)


class LoadedConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings, and for each that is not a default where it came from."""

    config: Config
    sources: dict[str, str]

    def source_of(self, name: str) -> str:
        """Where a setting came from."""
        return self.sources.get(name, "default")


def setting_names() -> list[str]:
    """Every setting as ``section.name``."""
    return [
        f"{section}.{name}"
        for section in Config.__struct_fields__
        for name in getattr(Config(), section).__struct_fields__
    ]


def load_config(
    *,
    file: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    flags: Mapping[str, object] | None = None,
) -> LoadedConfig:
    """Put the settings together. Without ``file``, ``lanner.toml`` of the current directory counts."""
    values: dict[str, object] = {}
    sources: dict[str, str] = {}
    for name, value, source in (
        *_from_file(file),
        *_from_environment(environment),
        *((name, value, f"flag --{name}") for name, value in (flags or {}).items() if value is not None),
    ):
        values[name] = value
        sources[name] = source
    return LoadedConfig(config=_convert(values, sources), sources=sources)


def _from_file(file: Path | None) -> Iterator[tuple[str, object, str]]:
    path = file or Path(CONFIG_NAME)
    if file is None and not path.exists():
        return
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise InvalidPropertyError(f"{path} is larger than {MAX_CONFIG_BYTES:,} bytes")
        document = tomllib.loads(path.read_text())
    except OSError as error:
        raise InvalidPropertyError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise InvalidPropertyError(f"{path} is not TOML: {error}") from error
    for section, settings in document.items():
        if not isinstance(settings, dict):
            raise InvalidPropertyError(f"{path}: {section} stands outside of a section")
        for name, value in settings.items():
            yield f"{section}.{name}", value, f"file {path}"


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, object, str]]:
    for name in setting_names():
        variable = ENVIRONMENT_PREFIX + name.replace(".", "_").upper()
        if variable in environment:
            text = environment[variable]
            yield name, _from_text(name, text), f"environment {variable}"


def _from_text(name: str, text: str) -> object:
    """Lists are written with commas, tables as ``name=value`` with commas between."""
    section, _, key = name.partition(".")
    default = getattr(getattr(Config(), section), key)
    if not isinstance(default, dict | tuple):
        return text
    entries = [entry for entry in text.split(",") if entry]
    if isinstance(default, tuple):
        return entries
    if not all("=" in entry for entry in entries):
        raise InvalidPropertyError(f"{name} = {text!r}: it must be name=value,name=value")
    return dict(entry.partition("=")[::2] for entry in entries)


def _convert(values: Mapping[str, object], sources: Mapping[str, str]) -> Config:
    known = setting_names()
    tree: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
            raise InvalidPropertyError(f"there is no setting {name} ({sources[name]})", hint=hint)
        section, _, key = name.partition(".")
        tree.setdefault(section, {})[key] = value
        try:
            msgspec.convert({section: {key: value}}, Config, strict=False)
        except msgspec.ValidationError as error:
            reason = str(error).partition(" - at")[0]
            raise InvalidPropertyError(f"{name} = {value!r} ({sources[name]}): {reason}") from error
    config = msgspec.convert(tree, Config, strict=False)
    config.manager.settings().check()
    if config.ldap.servers:
        config.ldap.check()
        if config.directory.file:
            raise InvalidPropertyError(
                "directory.file and ldap.servers are both set", hint="a manager has one directory"
            )
    return config
