"""qmmgmt in impacket's words: the structures of MS-MQMR and MS-MQMQ, declared by hand from their IDL."""

# mypy: disable-error-code="import-untyped, import-not-found"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar
from uuid import UUID

from impacket.dcerpc.v5.dtypes import GUID, LONG, LPWSTR, ULONG, USHORT, WSTR
from impacket.dcerpc.v5.ndr import (
    NDRCALL,
    NDRHYPER,
    NDRPOINTER,
    NDRSHORT,
    NDRSMALL,
    NDRSTRUCT,
    NDRUHYPER,
    NDRUNION,
    NDRUSMALL,
    NDRUniConformantArray,
)

VECTOR = 0x1000


class EMPTY(NDRSTRUCT):  # type: ignore[misc]
    """An arm without data."""

    structure = ()

    # impacket knows no such arms: what it would do with an empty structure fails. The names are impacket's.

    def getAlignment(self) -> int:  # noqa: N802
        return 1

    def getData(self, soFar: int = 0) -> bytes:  # noqa: N802, N803
        return b""

    def fromString(self, data: bytes, offset: int = 0) -> int:  # noqa: N802
        return 0


class OBJECTID(NDRSTRUCT):  # type: ignore[misc]
    structure = (("Lineage", GUID), ("Uniquifier", ULONG))


class DL_ID(NDRSTRUCT):  # type: ignore[misc]  # noqa: N801 - the specification's name
    structure = (("m_DlGuid", GUID), ("m_pwzDomain", LPWSTR))


class MULTICAST_ID(NDRSTRUCT):  # type: ignore[misc]  # noqa: N801
    structure = (("m_address", ULONG), ("m_port", ULONG))


class QUEUE_FORMAT_UNION(NDRUNION):  # type: ignore[misc]  # noqa: N801
    notAlign = 1  # noqa: N815 - no ms_union: the arm has its own alignment
    commonHdr = (("tag", NDRUSMALL),)  # noqa: N815
    union: ClassVar[dict[int, Any]] = {
        0: ("unknown", EMPTY),
        1: ("m_gPublicID", GUID),
        2: ("m_oPrivateID", OBJECTID),
        3: ("m_pDirectID", LPWSTR),
        4: ("m_gMachineID", GUID),
        5: ("m_GConnectorID", GUID),
        6: ("m_DlID", DL_ID),
        7: ("m_MulticastID", MULTICAST_ID),
        8: ("m_pDirectSubqueueID", LPWSTR),
    }


class QUEUE_FORMAT(NDRSTRUCT):  # type: ignore[misc]  # noqa: N801
    structure = (
        ("m_qft", NDRUSMALL),
        ("m_SuffixAndFlags", NDRUSMALL),
        ("m_reserved", USHORT),
        ("u", QUEUE_FORMAT_UNION),
    )


class PQUEUE_FORMAT(NDRPOINTER):  # type: ignore[misc]  # noqa: N801
    referent = (("Data", QUEUE_FORMAT),)


class MGMT_OBJECT_UNION(NDRUNION):  # type: ignore[misc]  # noqa: N801
    notAlign = 1  # noqa: N815
    commonHdr = (("tag", USHORT),)  # noqa: N815
    union: ClassVar[dict[int, Any]] = {
        1: ("Reserved1", ULONG),
        2: ("pQueueFormat", PQUEUE_FORMAT),
        3: ("Reserved2", ULONG),
    }


class MGMT_OBJECT(NDRSTRUCT):  # type: ignore[misc]  # noqa: N801
    structure = (("type", USHORT), ("u", MGMT_OBJECT_UNION))


# PROPVARIANT (MS-MQMQ 2.2.13): the structure begins at a multiple of 8.


def _array(item: Any) -> Any:
    """A structure of a count and a pointer to as many elements (MS-MQMQ 2.2.15, 2.2.16)."""
    elements = type("ELEMENTS", (NDRUniConformantArray,), {"item": item})
    pointer = type("PELEMENTS", (NDRPOINTER,), {"referent": (("Data", elements),)})
    return type("COUNTED", (NDRSTRUCT,), {"structure": (("cElems", ULONG), ("pElems", pointer))})


class PGUID(NDRPOINTER):  # type: ignore[misc]
    referent = (("Data", GUID),)


class PROPVARIANT_UNION(NDRUNION):  # type: ignore[misc]  # noqa: N801
    notAlign = 1  # noqa: N815
    commonHdr = (("tag", USHORT),)  # noqa: N815
    union: ClassVar[dict[int, Any]] = {
        0: ("empty", EMPTY),
        1: ("null", EMPTY),
        2: ("iVal", NDRSHORT),
        3: ("lVal", LONG),
        11: ("boolVal", USHORT),
        16: ("cVal", NDRSMALL),
        17: ("bVal", NDRUSMALL),
        18: ("uiVal", USHORT),
        19: ("ulVal", ULONG),
        20: ("hVal", NDRHYPER),
        21: ("uhVal", NDRUHYPER),
        31: ("pwszVal", LPWSTR),
        65: ("blob", _array("c")),
        72: ("puuid", PGUID),
        VECTOR | 17: ("caub", _array("c")),
        VECTOR | 18: ("caui", _array(USHORT)),
        VECTOR | 3: ("cal", _array(LONG)),
        VECTOR | 19: ("caul", _array(ULONG)),
        VECTOR | 21: ("cauh", _array(NDRUHYPER)),
        VECTOR | 72: ("cauuid", _array(GUID)),
        VECTOR | 31: ("calpwstr", _array(LPWSTR)),
    }


class PROPVARIANT(NDRSTRUCT):  # type: ignore[misc]
    structure = (
        ("vt", USHORT),
        ("wReserved1", NDRUSMALL),
        ("wReserved2", NDRUSMALL),
        ("wReserved3", ULONG),
        ("u", PROPVARIANT_UNION),
    )

    def getAlignment(self) -> int:  # noqa: N802
        return 8


PROPVARIANT_UNION.union[VECTOR | 12] = ("capropvar", _array(PROPVARIANT))


class PROPVARIANTS(NDRUniConformantArray):  # type: ignore[misc]
    item = PROPVARIANT


class PROPIDS(NDRUniConformantArray):  # type: ignore[misc]
    item = ULONG


def get_info(properties: Sequence[int], queue: tuple[int, int, Any] | None, kind: int | None = None) -> Any:
    """R_QMMgmtGetInfo with its values set to VT_NULL.

    impacket fills up to the elements of a conformant array from where its count begins, not from where it
    ends, which is wrong for elements aligned to 8: the count and the elements are declared one by one.
    """
    fields = [(f"apVar{index}", PROPVARIANT) for index in range(len(properties))]
    structure = (
        ("pObjectFormat", MGMT_OBJECT),
        ("cp", ULONG),
        ("aProp", PROPIDS),
        ("apVar", ULONG),
        *fields,
    )
    call = type("R_QMMgmtGetInfo", (NDRCALL,), {"opnum": 0, "structure": structure})()
    fill_object(call["pObjectFormat"], queue, kind)
    call["cp"] = call["apVar"] = len(properties)
    for number in properties:
        element = ULONG()
        element["Data"] = number
        call["aProp"].append(element)
    for name, _ in fields:
        call[name]["vt"] = call[name]["u"]["tag"] = 1
    return call


class R_QMMgmtGetInfoResponse(NDRCALL):  # type: ignore[misc]  # noqa: N801
    structure = (("apVar", PROPVARIANTS), ("ErrorCode", ULONG))


class R_QMMgmtAction(NDRCALL):  # type: ignore[misc]  # noqa: N801
    opnum = 1
    structure = (("pObjectFormat", MGMT_OBJECT), ("lpwszAction", WSTR))


def act(action: str, queue: tuple[int, int, Any] | None, kind: int | None = None) -> Any:
    """R_QMMgmtAction."""
    call = R_QMMgmtAction()
    fill_object(call["pObjectFormat"], queue, kind)
    call["lpwszAction"] = action + "\0"
    return call


class R_QMMgmtActionResponse(NDRCALL):  # type: ignore[misc]  # noqa: N801
    structure = (("ErrorCode", ULONG),)


# In Python's words.


def fill_object(target: Any, queue: tuple[int, int, Any] | None, kind: int | None = None) -> None:
    """Fill a MGMT_OBJECT: the machine, or a queue by its kind, its suffix and flags, and its arm."""
    target["type"] = target["u"]["tag"] = kind or (1 if queue is None else 2)
    if queue is None:
        return
    number, suffix, arm = queue
    structure = target["u"]["pQueueFormat"]
    structure["m_qft"] = number
    structure["m_SuffixAndFlags"] = suffix
    structure["u"]["tag"] = number
    name = QUEUE_FORMAT_UNION.union[number][0]
    if isinstance(arm, UUID):
        structure["u"][name] = arm.bytes_le
    elif isinstance(arm, str):
        structure["u"][name] = arm + "\0"
    elif isinstance(arm, dict):
        for field, value in arm.items():
            structure["u"][name][field] = value.bytes_le if isinstance(value, UUID) else value


def plain(variant: Any) -> Any:
    """The value of a variant: None for VT_NULL."""
    kind = variant["vt"]
    if kind in (0, 1):
        return None
    value = variant["u"][PROPVARIANT_UNION.union[kind][0]]
    if kind == 31:
        return _text(value)
    if kind == 65:
        return b"".join(value["pElems"])
    if kind & VECTOR:
        if not value["cElems"]:
            return []
        return [_element(kind & ~VECTOR, each) for each in value["pElems"]]
    return value


def _element(kind: int, value: Any) -> Any:
    if kind == 12:
        return plain(value)
    if kind == 31:
        return _text(value["Data"])
    if kind == 72:
        return UUID(bytes_le=value["Data"])
    return value["Data"] if kind in (3, 18, 19, 21) else value


def _text(value: Any) -> str:
    return str(value).removesuffix("\0")
