"""The options of ``format("msmq")``: their names, what they may be, and a clear error for what they may not.

They are named as Kafka's are where there is such an option. Names do not depend on case, as Spark's do not.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from lanner.client.address import Address, find_address
from lanner.model.errors import ConnectionFailedError
from lanner.pipeline.errors import InvalidOptionError
from lanner.pipeline.schema import KINDS, Kind

__all__ = [
    "SINK_OPTIONS",
    "SOURCE_OPTIONS",
    "Delivery",
    "ManagerAddress",
    "OffsetWish",
    "SinkOptions",
    "SourceOptions",
]

T = TypeVar("T")

EARLIEST, LATEST = "earliest", "latest"
OffsetWish = str | dict[str, Any]
"""``earliest``, ``latest``, or what is wanted of each manager."""

Delivery = Literal["durable", "transactional"]

SOURCE_OPTIONS = (
    "managers",
    "path",
    "queue",
    "queuePattern",
    "what",
    "startingOffsets",
    "endingOffsets",
    "maxOffsetsPerTrigger",
    "minPartitions",
    "failOnDataLoss",
    "includeBody",
    "token",
    "tokenFile",
    "patience",
    "reader",
)

SINK_OPTIONS = ("managers", "queue", "delivery", "key", "token", "tokenFile", "patience")

_OF_SPARK = {"checkpointlocation", "queryname", "outputmode", "path"}
"""Options that Spark hands on although they are its own."""

DEFAULT_PATIENCE = 10.0
MAX_KEY = 256
"""Characters: the manager takes 512, and the partition and the queue are added."""

MAX_READER = 128


class ManagerAddress(NamedTuple):
    """Where a manager's API is, and the token for it."""

    url: str
    token: str

    def __repr__(self) -> str:
        return f"ManagerAddress({self.url!r})"  # the token is nobody's business

    @property
    def address(self) -> Address:
        """What the client takes."""
        return Address(self.url, self.token)


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """What is to be read."""

    managers: tuple[ManagerAddress, ...] = ()
    path: str = ""
    queue: str = ""
    queue_pattern: str = ""
    what: Kind = "history"
    starting_offsets: OffsetWish | None = None
    """None is the default: everything for a batch, what is new for a stream."""
    ending_offsets: OffsetWish = LATEST
    max_offsets_per_trigger: int | None = None
    min_partitions: int = 1
    fail_on_data_loss: bool = True
    include_body: bool = True
    patience: float = DEFAULT_PATIENCE
    reader: str = ""

    @classmethod
    def parse(cls, given: Mapping[str, str], *, streaming: bool = False) -> SourceOptions:
        """Read and check the options of a read."""
        options = _Given(given, SOURCE_OPTIONS)
        path = options.text("path")
        if bool(path) == bool(options.text("managers")):
            raise InvalidOptionError(
                "give either 'managers' or 'path'",
                hint="managers is one or more API addresses with commas, path an exported history",
            )
        if options.text("queue") and options.text("queuePattern"):
            raise InvalidOptionError("give either 'queue' or 'queuePattern', not both")
        parsed = cls(
            managers=() if path else _managers(options),
            path=path,
            queue=options.text("queue"),
            queue_pattern=options.text("queuePattern"),
            what=options.one_of("what", KINDS, "history"),
            starting_offsets=options.offsets("startingOffsets"),
            ending_offsets=options.offsets("endingOffsets") or LATEST,
            max_offsets_per_trigger=options.count("maxOffsetsPerTrigger"),
            min_partitions=options.count("minPartitions") or 1,
            fail_on_data_loss=options.truth("failOnDataLoss", True),
            include_body=options.truth("includeBody", True),
            patience=options.seconds("patience", DEFAULT_PATIENCE),
            reader=options.text("reader"),
        )
        _check_combination(parsed, options, streaming)
        return parsed


@dataclass(frozen=True, kw_only=True)
class SinkOptions:
    """Where to, and how."""

    manager: ManagerAddress
    queue: str = ""
    delivery: Delivery = "durable"
    key: str = ""
    patience: float = DEFAULT_PATIENCE

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> SinkOptions:
        """Read and check the options of a write."""
        options = _Given(given, SINK_OPTIONS)
        if not options.text("managers"):
            raise InvalidOptionError("give 'managers'", hint="the API address of the manager to send through")
        managers = _managers(options)
        if len(managers) != 1:
            raise InvalidOptionError(
                "messages are sent through one manager", hint="give one address in 'managers'"
            )
        key = options.text("key")
        if len(key) > MAX_KEY:
            raise InvalidOptionError(f"'key' has at most {MAX_KEY} characters")
        return cls(
            manager=managers[0],
            queue=options.text("queue"),
            delivery=options.one_of("delivery", ("durable", "transactional"), "durable"),
            key=key,
            patience=options.seconds("patience", DEFAULT_PATIENCE),
        )


class _Given:
    """The options as they came, by name."""

    def __init__(self, given: Mapping[str, str], known: Iterable[str]) -> None:
        names = {name.lower(): name for name in known}
        self._values: dict[str, str] = {}
        for name, value in given.items():
            if name.lower() in names:
                self._values[names[name.lower()]] = str(value).strip()
            elif name.lower() not in _OF_SPARK:
                near = difflib.get_close_matches(name.lower(), names, n=1)
                hint = (
                    f"do you mean '{names[near[0]]}'?" if near else f"there are {', '.join(names.values())}"
                )
                raise InvalidOptionError(f"there is no option '{name}'", hint=hint)

    def is_given(self, name: str) -> bool:
        return bool(self._values.get(name))

    def text(self, name: str) -> str:
        return self._values.get(name, "")

    def texts(self, name: str) -> list[str]:
        return [part.strip() for part in self.text(name).split(",") if part.strip()]

    def truth(self, name: str, default: bool) -> bool:
        text = self.text(name).lower()
        if text not in ("", "true", "false"):
            raise InvalidOptionError(f"'{name}' is true or false, not {text!r}")
        return text == "true" if text else default

    def one_of(self, name: str, allowed: tuple[T, ...], default: T) -> T:
        text = self.text(name).lower()
        found = {str(value): value for value in allowed}
        if text and text not in found:
            raise InvalidOptionError(f"'{name}' is one of {', '.join(found)}, not {text!r}")
        return found[text] if text else default

    def count(self, name: str) -> int | None:
        return self._number(name, int, lambda number: number >= 1, "a whole number of 1 or more")

    def seconds(self, name: str, default: float) -> float:
        number = self._number(name, float, lambda seconds: 0 <= seconds <= 3600, "seconds, from 0 to 3600")
        return default if number is None else number

    def _number(
        self, name: str, kind: Callable[[str], T], is_right: Callable[[T], bool], what: str
    ) -> T | None:
        text = self.text(name)
        if not text:
            return None
        try:
            number = kind(text)
        except ValueError:
            pass
        else:
            if is_right(number):
                return number
        raise InvalidOptionError(f"'{name}' is {what}, not {text!r}")

    def offsets(self, name: str) -> OffsetWish | None:
        text = self.text(name)
        if not text:
            return None
        if text.lower() in (EARLIEST, LATEST):
            return text.lower()
        try:
            wanted = json.loads(text)
        except ValueError:
            wanted = None
        if not isinstance(wanted, dict) or not wanted:
            raise InvalidOptionError(
                f"'{name}' is earliest, latest or JSON by manager, not {text!r}",
                hint='for example {"LON-1": 4711, "PAR-1": "earliest"}',
            )
        return wanted


def _check_combination(parsed: SourceOptions, options: _Given, streaming: bool) -> None:
    if streaming:
        if parsed.what != "history" or parsed.path:
            raise InvalidOptionError(
                "a stream reads the history of managers", hint="read files, messages and queues as a batch"
            )
        if options.is_given("endingOffsets"):
            raise InvalidOptionError("a stream has no 'endingOffsets'")
        if len(parsed.reader) > MAX_READER:
            raise InvalidOptionError(f"'reader' has at most {MAX_READER} characters")
    elif parsed.reader:
        raise InvalidOptionError("'reader' is for streams: a batch has nothing to come back for")
    elif parsed.starting_offsets == LATEST or parsed.ending_offsets == EARLIEST:
        raise InvalidOptionError("a batch cannot begin at latest or end at earliest")
    if parsed.path and (options.is_given("startingOffsets") or options.is_given("endingOffsets")):
        raise InvalidOptionError("offsets are for 'managers'", hint="filter files by their columns")
    if parsed.path and parsed.what != "history":
        raise InvalidOptionError(f"files hold history, not {parsed.what}")


def _managers(options: _Given) -> tuple[ManagerAddress, ...]:
    urls = options.texts("managers")
    for url in urls:
        if not url.startswith(("http://", "https://")):
            raise InvalidOptionError(
                f"{url!r} in 'managers' is no API address", hint="write it like http://127.0.0.1:8081"
            )
    if len(set(urls)) != len(urls):
        raise InvalidOptionError("a manager is in 'managers' twice")
    tokens = _tokens(options)
    if len(tokens) not in (0, 1, len(urls)):
        raise InvalidOptionError(
            f"there are {len(urls)} managers and {len(tokens)} tokens",
            hint="give one for all, or one for each",
        )
    each = tokens * len(urls) if len(tokens) == 1 else tokens or [""] * len(urls)
    return tuple(_manager(url, token) for url, token in zip(urls, each, strict=True))


def _manager(url: str, token: str) -> ManagerAddress:
    try:
        found = find_address(api=url, token=token or None)
    except ConnectionFailedError:
        raise InvalidOptionError(
            f"there is no token for {url}", hint="give 'token' or 'tokenFile', or set LANNER_TOKEN"
        ) from None
    return ManagerAddress(found.url, found.token)


def _tokens(options: _Given) -> list[str]:
    if options.is_given("token") and options.is_given("tokenFile"):
        raise InvalidOptionError("give either 'token' or 'tokenFile', not both")
    # Files are read here, on the driver: executors on other machines need not have them.
    return options.texts("token") or [_token_of(name) for name in options.texts("tokenFile")]


def _token_of(name: str) -> str:
    try:
        return Path(name).read_text().strip()
    except OSError as error:
        raise InvalidOptionError(f"cannot read the token file {name}: {error.strerror}") from error
