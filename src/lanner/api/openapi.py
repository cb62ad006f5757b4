"""The OpenAPI document, made from the table of endpoints and the structs that they take and give."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from lanner import __version__
from lanner.api.context import Endpoint
from lanner.schema.base import ErrorAnswer

__all__ = ["openapi_document"]

_REFERENCE = "#/components/schemas/{name}"


@lru_cache(maxsize=1)
def openapi_document(endpoints: tuple[Endpoint, ...]) -> bytes:
    """Render the document as JSON."""
    schemas = _component_schemas(endpoints)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Lanner", "version": __version__, "summary": "The API of one queue manager"},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }
    return msgspec.json.encode(document)


def _component_schemas(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    structs = {endpoint.request for endpoint in endpoints}
    answers = {endpoint.answer for endpoint in endpoints if not isinstance(endpoint.answer, str)}
    _, components = msgspec.json.schema_components(
        sorted(structs | answers | {ErrorAnswer}, key=lambda kind: kind.__name__), ref_template=_REFERENCE
    )
    return components


def _operation(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": f"{endpoint.method.lower()}{endpoint.path.replace('/', '_')}",
        "responses": {"200": _answer(endpoint), "default": _content("What is wrong", _ref(ErrorAnswer))},
    }
    if endpoint.method in ("GET", "DELETE"):
        operation["parameters"] = _parameters(schemas[endpoint.request.__name__])
    elif endpoint.request.__struct_fields__:
        operation["requestBody"] = {"required": True, **_content("", _ref(endpoint.request))}
    return operation


def _parameters(schema: dict[str, Any]) -> list[dict[str, Any]]:
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": kind}
        for name, kind in schema.get("properties", {}).items()
    ]


def _answer(endpoint: Endpoint) -> dict[str, Any]:
    if isinstance(endpoint.answer, str):
        return {"description": "It is done", "content": {endpoint.answer: {"schema": {"type": "string"}}}}
    return _content("It is done", _ref(endpoint.answer))


def _content(description: str, schema: dict[str, str]) -> dict[str, Any]:
    content = {"content": {"application/json": {"schema": schema}}}
    return {"description": description, **content} if description else content


def _ref(kind: type[msgspec.Struct]) -> dict[str, str]:
    return {"$ref": _REFERENCE.format(name=kind.__name__)}
