"""One package per protocol: bytes (wire), state (sessions), sockets (endpoint)."""
