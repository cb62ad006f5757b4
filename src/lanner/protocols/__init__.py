"""One package per protocol, each with wire.py (bytes), session.py (state) and endpoint.py (sockets)."""
