"""Measurements of Lanner against its peers and against its own past."""
