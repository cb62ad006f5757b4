"""What goes over the API: requests and answers, as JSON or MessagePack.

The API and the client share these. Bytes are base64 in JSON and plain in MessagePack; times are Unix
seconds; a field that is left out has its default.
"""
