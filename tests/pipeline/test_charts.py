"""The drawings of the report: well formed, labelled at full hours, and safe with any name."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from lanner.pipeline.charts import MAX_DRAWN, bars, flow_map, lines

HOUR = 3600.0
MIDNIGHT = 1_763_078_400.0  # 2025-11-14, in UTC
NASTY = "<b>&\"'"


def svg(drawing: str) -> ET.Element:
    return ET.fromstring(drawing[drawing.index("<svg") : drawing.index("</svg>") + 6])


def texts(drawing: str) -> list[str]:
    return [element.text or "" for element in svg(drawing).iter() if element.tag.endswith("text")]


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        (0, ["14 Nov 00:00"]),
        (3, ["14 Nov 00:00", "14 Nov 01:00", "14 Nov 02:00", "14 Nov 03:00"]),
        (40, [f"{14 + hour // 24} Nov {hour % 24:02}:00" for hour in range(0, 41, 6)]),
        (
            24 * 30,
            [f"{day:02} {month} 00:00" for day, month in ((20, "Nov"), (27, "Nov"), (4, "Dec"), (11, "Dec"))],
        ),
    ],
)
def test_times_are_labelled_where_people_look_for_them(hours: int, expected: list[str]) -> None:
    drawing = lines({"sent": [(MIDNIGHT + HOUR * hour, 1.0) for hour in range(hours + 1)]}, "messages")
    assert [text for text in texts(drawing) if ":" in text] == expected


def test_a_span_of_ten_years_has_few_labels() -> None:
    drawing = lines({"sent": [(MIDNIGHT, 1.0), (MIDNIGHT + HOUR * 24 * 3650, 2.0)]}, "messages")
    assert 2 <= len([text for text in texts(drawing) if ":" in text]) <= 8


def test_nothing_to_show() -> None:
    for drawing in (lines({}, "x"), lines({"a": []}, "x"), bars([], "x"), flow_map([], {})):
        assert "nothing to show" in drawing


@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize("values", [[0.0], [0.0, 0.0], [1e-9, 1e12], [5.0, 5.0], [1.0] * 100])
def test_values_of_any_size(values: list[float], logarithmic: bool) -> None:
    series = {"a": [(MIDNIGHT + HOUR * number, value) for number, value in enumerate(values)]}
    drawing = lines(series, "seconds", logarithmic=logarithmic)
    points = re.findall(r"([\d.]+),([\d.]+)", drawing.partition('points="')[2].partition('"')[0])
    assert len(points) == len(values)
    assert all(0 <= float(x) <= 860 and 0 <= float(y) <= 260 for x, y in points)


def test_names_are_words_and_not_marks() -> None:
    for drawing in (
        lines({NASTY: [(MIDNIGHT, 1.0)]}, NASTY),
        bars([(NASTY, 1.0)], NASTY),
        flow_map([(NASTY, "B", 1)], {NASTY: 1}),
    ):
        assert "<b>" not in drawing
        svg(drawing)


def test_labels_are_on_the_side_away_from_the_others() -> None:
    drawing = svg(flow_map([("A", "B", 5), ("B", "C", 3), ("C", "A", 1)], {"B": 2}))
    circles = [float(one.get("cy", "")) for one in drawing.iter() if one.tag.endswith("circle")]
    labels = [float(one.get("y", "")) for one in drawing.iter() if one.get("class") == "strong"]
    middle = sum(circles) / len(circles)
    for circle, label in zip(circles, labels, strict=True):
        assert (label < circle) == (circle < middle)


def test_only_the_busiest_managers_are_drawn() -> None:
    flows = [("hub", f"m{number:03}", number + 1) for number in range(MAX_DRAWN + 9)]
    drawing = flow_map(flows, {})
    assert drawing.count("<circle") == MAX_DRAWN
    assert "10 managers with less traffic are not drawn" in drawing
    assert "m000" not in drawing
