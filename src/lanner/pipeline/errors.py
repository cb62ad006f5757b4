"""What can go wrong between Spark and the managers, and how loss is told."""

from __future__ import annotations

import logging

from lanner.model.errors import LannerError

__all__ = ["DataLossError", "InvalidOptionError", "ManagerAwayError", "tell_loss"]

logger = logging.getLogger("lanner.pipeline")

GO_ON_HINT = "failOnDataLoss=false goes on with what is there"


class InvalidOptionError(LannerError):
    """An option of the data source that cannot be right."""


class DataLossError(LannerError):
    """Rows that a query was to read are not there any more."""


class ManagerAwayError(LannerError):
    """A manager did not answer in time."""


def tell_loss(what: str, *, fail: bool) -> None:
    """Fail, or write a loss report: a warning of the logger ``lanner.pipeline``, in Spark's own log."""
    if fail:
        raise DataLossError(f"data loss: {what}", hint=GO_ON_HINT)
    logger.warning("data loss: %s", what)
