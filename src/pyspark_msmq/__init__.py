"""Where Spark looks for ``format("msmq")``: the ``DefaultSource`` of packages called ``pyspark_...``."""

from lanner.pipeline.source import MsmqSource as DefaultSource

__all__ = ["DefaultSource"]
