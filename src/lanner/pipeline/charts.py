"""Small drawings as inline SVG: lines over time, bars, a map of flows. Nothing to install or load."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape

import numpy as np

from lanner.routing.layout import place

__all__ = ["bars", "flow_map", "lines"]

WIDTH, HEIGHT = 860, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 28, 30
COLOURS = ("#1665c1", "#c0392b", "#2e8b57", "#b7791f", "#6b46c1", "#51606f", "#0e7490", "#be185d")
MAX_SERIES = len(COLOURS)
MAX_DRAWN = 60
"""Managers on the map; more cannot be read."""

_TICKS = 4
_TIME_TICKS = 7
_TIME_STEPS = [3600.0 * hours for hours in (1, 2, 3, 6, 12, 24, 48, 168)]
_MAX_LABEL = 60
_SPACING = 190.0
_ABOVE, _BELOW = (-42.0, -27.0), (37.0, 52.0)
"""Where the two lines of a manager's label are: on the side away from the others."""


def lines(
    series: Mapping[str, Sequence[tuple[float, float]]], unit: str, *, logarithmic: bool = False
) -> str:
    """Values over time, in seconds since 1970; one line for each name."""
    chosen = dict(list(series.items())[:MAX_SERIES])
    points = [point for values in chosen.values() for point in values]
    if not points:
        return _nothing()
    times = [time for time, _ in points]
    first, last = min(times), max(times)
    scale = _Scale([value for _, value in points], logarithmic=logarithmic)

    def at(time: float) -> float:
        share = (time - first) / (last - first) if last > first else 0.5
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    parts = [*_frame(scale, unit), *_time_axis(first, last, at)]
    for (name, values), colour in zip(chosen.items(), COLOURS, strict=False):
        ordered = sorted(values)
        path = " ".join(f"{at(time):.1f},{scale.at(value):.1f}" for time, value in ordered)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if len(ordered) <= 48:  # more dots would hide the line
            parts += [
                f'<circle cx="{at(time):.1f}" cy="{scale.at(value):.1f}" r="3" fill="{colour}">'
                f"<title>{escape(name)}: {_short(value)} {escape(unit)}, {_moment(time)}</title></circle>"
                for time, value in ordered
            ]
    return _legend(chosen) + _svg(WIDTH, HEIGHT, parts)


def bars(rows: Sequence[tuple[str, float]], unit: str, *, limit: int = 12) -> str:
    """One bar for each name, the longest first."""
    chosen = sorted(rows, key=lambda row: -row[1])[:limit]
    if not chosen:
        return _nothing()
    largest = max(value for _, value in chosen) or 1.0
    height = 26 * len(chosen) + 8
    left = 380
    parts = []
    for number, (name, value) in enumerate(chosen):
        y = 6 + 26 * number
        width = max(2.0, (WIDTH - left - 110) * value / largest)
        parts.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{escape(_cut(name))}</text>')
        parts.append(f'<rect x="{left}" y="{y}" width="{width:.1f}" height="18" rx="2" fill="{COLOURS[0]}">')
        parts.append(f"<title>{escape(name)}: {_short(value)} {escape(unit)}</title></rect>")
        parts.append(f'<text x="{left + width + 6:.1f}" y="{y + 14}">{_short(value)} {escape(unit)}</text>')
    return _svg(WIDTH, height, parts)


def flow_map(flows: Sequence[tuple[str, str, int]], troubled: Mapping[str, int]) -> str:
    """Managers as circles and what goes between them as arrows, as thick as the traffic is heavy.

    ``troubled`` are managers with dead letters.
    """
    total: dict[str, int] = {}
    for one, other, count in flows:
        for name in (one, other):
            total[name] = total.get(name, 0) + count
    kept = sorted(total, key=lambda name: (-total[name], name))[:MAX_DRAWN]
    if not kept:
        return _nothing()
    names = sorted(kept)
    index = {name: number for number, name in enumerate(names)}
    drawn = [
        (one, other, count) for one, other, count in flows if one in index and other in index and one != other
    ]
    points = place(len(names), [(index[one], index[other]) for one, other, _ in drawn], _SPACING)
    points = points - points.min(axis=0) + np.array((110.0, 70.0))
    width, height = (float(side) for side in points.max(axis=0) + np.array((110.0, 70.0)))
    middle = float(points[:, 1].mean())
    most = max((count for _, _, count in drawn), default=1)
    parts = [
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="11" markerHeight="11" '
        'markerUnits="userSpaceOnUse" orient="auto">'
        '<path d="M0,0 L10,5 L0,10 z" fill="#51606f"/></marker></defs>'
    ]
    for one, other, count in sorted(drawn, key=lambda flow: flow[2]):
        parts += _arrow(tuple(points[index[one]]), tuple(points[index[other]]), one, other, count, most)
    for name in names:
        x, y = points[index[name]]
        dead = troubled.get(name, 0)
        fill, edge = ("#fbe9e7", "#c0392b") if dead else ("#e4effb", "#1665c1")
        words = f"{total[name]:,} messages" + (f", {dead:,} dead" if dead else "")
        first, second = _ABOVE if y < middle else _BELOW
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="20" fill="{fill}" stroke="{edge}" stroke-width="2"/>',
            f'<text x="{x:.1f}" y="{y + first:.1f}" text-anchor="middle" class="strong">'
            f"{escape(_cut(name))}</text>",
            f'<text x="{x:.1f}" y="{y + second:.1f}" text-anchor="middle" class="on-top">{words}</text>',
        ]
    left_out = len(total) - len(names)
    note = f"<p class=note>{left_out:,} managers with less traffic are not drawn.</p>" if left_out else ""
    return _svg(max(width, 420.0), height, parts) + note


class _Scale:
    """Values as heights, from nothing or, for values of all sizes, by powers of ten."""

    def __init__(self, values: Sequence[float], *, logarithmic: bool) -> None:
        self.logarithmic = logarithmic
        largest = max(values)
        if logarithmic:
            smallest = min((value for value in values if value > 0), default=0.001)
            self.low = float(math.floor(math.log10(smallest)))
            self.high = max(self.low + 1.0, float(math.ceil(math.log10(max(largest, smallest * 1.01)))))
        else:
            self.low, self.high = 0.0, _round_up(largest) if largest > 0 else 1.0

    def at(self, value: float) -> float:
        if self.logarithmic:
            value = math.log10(value) if value > 0 else self.low
        share = (value - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - min(1.0, max(0.0, share)) * (HEIGHT - TOP - BOTTOM)

    def ticks(self) -> list[float]:
        if self.logarithmic:
            step = max(1, round((self.high - self.low) / _TICKS))
            return [10.0**power for power in range(int(self.low), int(self.high) + 1, step)]
        return [self.high * number / _TICKS for number in range(_TICKS + 1)]


def _frame(scale: _Scale, unit: str) -> Iterator[str]:
    for value in scale.ticks():
        y = scale.at(value)
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#dde3ea"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_short(value)}</text>'
    yield f'<text x="{LEFT}" y="14">{escape(unit)}</text>'


def _time_axis(first: float, last: float, at: Callable[[float], float]) -> Iterator[str]:
    bottom = HEIGHT - BOTTOM
    for time in _round_times(first, last):
        x = f"{at(time):.1f}"
        yield f'<line x1="{x}" y1="{bottom}" x2="{x}" y2="{bottom + 5}" stroke="#b9c4d0"/>'
        yield f'<text x="{x}" y="{HEIGHT - 8}" text-anchor="middle">{_moment(time)}</text>'


def _round_times(first: float, last: float) -> list[float]:
    """Full hours or days between two times, not more than can be read beside each other."""
    step = next((step for step in _TIME_STEPS if (last - first) / step <= _TIME_TICKS), _TIME_STEPS[-1])
    while (last - first) / step > _TIME_TICKS:
        step *= 2
    begin = math.ceil(first / step) * step
    return [begin + step * number for number in range(int((last - begin) // step) + 1)] or [first]


def _arrow(
    start: tuple[float, ...], end: tuple[float, ...], one: str, other: str, count: int, most: int
) -> Iterator[str]:
    """A curve, so that both directions can be seen."""
    (x1, y1), (x2, y2) = start[:2], end[:2]
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    along, across = ((x2 - x1) / length, (y2 - y1) / length), ((y1 - y2) / length, (x2 - x1) / length)
    bend = 26.0
    middle = ((x1 + x2) / 2 + across[0] * bend, (y1 + y2) / 2 + across[1] * bend)
    begin = (x1 + along[0] * 20 + across[0] * 7, y1 + along[1] * 20 + across[1] * 7)
    tip = (x2 - along[0] * 22 + across[0] * 7, y2 - along[1] * 22 + across[1] * 7)
    thick = 1.2 + 6.0 * math.sqrt(count / most)
    yield (
        f'<path d="M{begin[0]:.1f},{begin[1]:.1f} Q{middle[0]:.1f},{middle[1]:.1f} '
        f'{tip[0]:.1f},{tip[1]:.1f}" '
        f'fill="none" stroke="#8fb4de" stroke-width="{thick:.1f}" marker-end="url(#tip)">'
        f"<title>{escape(one)} to {escape(other)}: {count:,} messages</title></path>"
    )
    x, y = middle[0] + across[0] * 2, middle[1] + across[1] * 2
    yield f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" class="small">{_short(count)}</text>'


def _legend(series: Mapping[str, object]) -> str:
    items = "".join(
        f'<span><i style="background:{colour}"></i>{escape(name)}</span>'
        for name, colour in zip(series, COLOURS, strict=False)
    )
    return f'<div class="legend">{items}</div>'


def _svg(width: float, height: float, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
    return head + f'width="{width:.0f}" height="{height:.0f}" role="img">' + "".join(parts) + "</svg>"


def _nothing() -> str:
    return "<p class=note>There is nothing to show.</p>"


def _round_up(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 4, 5, 8, 10) if step * power >= value)


def _short(value: float) -> str:
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if suffix == 'k' else size):,.3g}{suffix}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3g}"


def _moment(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%d %b %H:%M")


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_LABEL else "…" + text[-_MAX_LABEL + 1 :]
