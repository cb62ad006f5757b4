"""The HTTP JSON API of one queue manager."""
