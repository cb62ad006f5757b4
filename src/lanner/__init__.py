"""Lanner: a Linux-native queue manager that speaks the published MSMQ protocols."""

__version__ = "0.1.0.dev0"
