"""The settings of a running queue manager, and where each of them came from.

Later ones win: the defaults here, ``lanner.toml``, the environment (``LANNER_API_PORT`` for ``api.port``),
flags of ``lanner serve``. A setting that does not exist, or has a value that cannot be meant, is an error
that names the place.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from lanner.directory.ldap.settings import LdapSettings
from lanner.directory.settings import DirectorySettings, check_one_directory
from lanner.manager.settings import ManagerSettings
from lanner.pipeline.settings import PipelineSettings
from lanner.protocols.management.settings import ManagementSettings
from lanner.protocols.srmp.settings import SrmpSettings
from lanner.settings import names_of, read_settings

__all__ = [
    "ApiConfig",
    "Config",
    "LoadedConfig",
    "LogConfig",
    "NetworkConfig",
    "load_config",
    "setting_names",
]

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
    directory: DirectorySettings = DirectorySettings()
    ldap: LdapSettings = LdapSettings()
    management: ManagementSettings = ManagementSettings()
    pipeline: PipelineSettings = PipelineSettings()
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
    return names_of(Config)


def load_config(
    *,
    file: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    flags: Mapping[str, object] | None = None,
) -> LoadedConfig:
    """Put the settings together. Without ``file``, ``lanner.toml`` of the current directory counts."""
    config, sources = read_settings(Config, file=file, environment=environment, flags=flags)
    config.manager.settings().check()
    check_one_directory(config.directory, config.ldap)
    config.pipeline.check()
    return LoadedConfig(config=config, sources=sources)
