"""The Python client library over the API."""
