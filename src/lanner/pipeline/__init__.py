"""Everything that needs pyspark. A queue manager never imports it."""
