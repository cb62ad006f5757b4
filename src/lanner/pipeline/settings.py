"""What the pipeline's commands take for options that are left out. Nothing here needs pyspark."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from lanner.directory.ldap.settings import LdapSettings
from lanner.directory.settings import DirectorySettings, check_one_directory
from lanner.model.errors import InvalidPropertyError
from lanner.settings import read_settings

__all__ = ["ELSEWHERE", "JobSettings", "PipelineSettings", "load_settings"]

ELSEWHERE = frozenset({"manager", "api", "network", "srmp", "management", "log"})
"""Sections of ``lanner.toml`` that say nothing to the pipeline."""

SPARK_PREFIX = "spark."

_NOT_HERE = {
    "spark.master": "write it as pipeline.master",
    "spark.sql.session.timeZone": "leave it out: days and hours of the tables are those of UTC",
}


class PipelineSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[pipeline]``: where the jobs on Spark read, write and run."""

    lake: str = "lanner-lake"
    """The directory of the tables, on any file system that Spark knows."""
    managers: tuple[str, ...] = ()
    """API addresses of the managers whose histories are taken in."""
    token_file: str = ""
    """A file with the token for the managers, or one for each with commas between them."""
    master: str = ""
    """Spark's master; empty for this machine. ``spark-submit`` has its own."""
    directory: str = ""
    """A file that describes the enterprise, for routes; empty for what ``[directory]`` or ``[ldap]`` says."""
    grace: Annotated[float, Meta(ge=0)] = 300.0
    """Seconds that a message may be under way before the audit doubts it."""
    spark: dict[str, str] = {}
    """Settings of Spark itself, as a table."""

    def source_options(self) -> dict[str, str]:
        """What the data source needs to be let in by the managers."""
        return {"tokenFile": self.token_file} if self.token_file else {}

    def check(self) -> None:
        """Raise InvalidPropertyError if Spark cannot be told what ``spark`` says."""
        for name in self.spark:
            if name in _NOT_HERE:
                raise InvalidPropertyError(f"pipeline.spark has {name}", hint=_NOT_HERE[name])
            if not name.startswith(SPARK_PREFIX):
                raise InvalidPropertyError(
                    f"pipeline.spark has {name!r}, which is no setting of Spark",
                    hint=f'their names begin with {SPARK_PREFIX}: "spark.executor.memory" = "4g"',
                )


class JobSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The sections that a job needs: its own, and where the enterprise is described."""

    pipeline: PipelineSettings = PipelineSettings()
    directory: DirectorySettings = DirectorySettings()
    ldap: LdapSettings = LdapSettings()


def load_settings(
    *,
    file: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    flags: Mapping[str, object] | None = None,
) -> JobSettings:
    """Put them together as a queue manager does; ``flags`` are the options that were given.

    Not with ``lanner.config``, which reaches into the manager for the other sections.
    """
    settings, _ = read_settings(
        JobSettings, file=file, environment=environment, flags=flags, elsewhere=ELSEWHERE
    )
    check_one_directory(settings.directory, settings.ldap)
    settings.pipeline.check()
    return settings
