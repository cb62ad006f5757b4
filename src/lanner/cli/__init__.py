"""The `lanner` command."""
