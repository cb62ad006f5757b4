from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import pytest
from tests.routing.worlds import ENTERPRISE, machine_id, site_id, world

from lanner.model.enterprise import EnterpriseMap, Site
from lanner.model.errors import InvalidPropertyError
from lanner.routing.layout import place
from lanner.routing.map_svg import MAX_DRAWN, draw
from lanner.routing.topology import Topology

SVG = "{http://www.w3.org/2000/svg}"
FIGURE_4 = world({"AB": 3, "BC": 12, "BD": 1, "CD": 1})


def parts(drawn: str, kind: str, look: str = "") -> list[ElementTree.Element]:
    root = ElementTree.fromstring(drawn)
    return [one for one in root.iter(SVG + kind) if not look or look in (one.get("class") or "").split()]


def texts(drawn: str, look: str) -> list[str]:
    """What is written; each text is drawn a second time below itself, as a halo."""
    return [one.text or "" for one in parts(drawn, "text", look) if "halo" not in (one.get("class") or "")]


def test_sites_links_costs_and_gates_are_there() -> None:
    drawn = draw(Topology(FIGURE_4))
    assert sorted(texts(drawn, "name")) == ["A", "B", "C", "D"]
    assert sorted(texts(drawn, "gates")) == ["A-GW", "B-GW", "C-GW", "D-GW"]
    assert sorted(texts(drawn, "cost")) == ["1", "1", "12", "3"]
    assert len(parts(drawn, "line", "link")) == 4
    assert not parts(drawn, "line", "tree")


def test_the_tree_of_a_site() -> None:
    drawn = draw(Topology(FIGURE_4), site_id("A"))
    assert len(parts(drawn, "line", "tree")) == 3
    assert len(parts(drawn, "line", "link")) == 1
    assert sorted(texts(drawn, "far")) == ["0", "3", "4", "5"]
    assert "least-cost tree of A" in drawn


def test_what_does_not_work_is_shown() -> None:
    drawn = draw(Topology(FIGURE_4, [machine_id("A-GW")]), site_id("B"))
    assert len(parts(drawn, "line", "out")) == 1
    assert texts(drawn, "missing") == ["no gate"]
    assert len(parts(drawn, "circle", "alone")) == 1


def test_names_are_escaped_and_cut() -> None:
    source = EnterpriseMap(
        enterprise=ENTERPRISE,
        sites=(Site(id=site_id("x"), name="<script>&\"'\x00 and much more than fits"),),
    )
    drawn = draw(Topology(source))
    assert texts(drawn, "name")[0].startswith("<script>")
    assert "<script>" not in drawn


def test_the_same_enterprise_gives_the_same_picture() -> None:
    assert draw(Topology(FIGURE_4)) == draw(Topology(FIGURE_4))


@pytest.mark.parametrize("count", [1, 2, 3, 5, 20, 60])
@pytest.mark.parametrize("form", ["chain", "star", "apart", "ring", "full"])
def test_sites_keep_their_distance(count: int, form: str) -> None:
    edges = {
        "chain": [(number, number + 1) for number in range(count - 1)],
        "star": [(0, number) for number in range(1, count)],
        "apart": [],
        "ring": [(number, (number + 1) % count) for number in range(count if count > 2 else 0)],
        "full": list(combinations(range(count), 2)),
    }[form]
    points = place(count, edges, 130.0)
    for one, other in combinations(points, 2):
        assert ((one - other) ** 2).sum() ** 0.5 > 100


def test_too_many_or_no_sites() -> None:
    many = tuple(Site(id=site_id(str(number)), name=str(number)) for number in range(MAX_DRAWN + 1))
    with pytest.raises(InvalidPropertyError, match="cannot be drawn"):
        draw(Topology(EnterpriseMap(enterprise=ENTERPRISE, sites=many)))
    with pytest.raises(InvalidPropertyError, match="no sites"):
        draw(Topology(EnterpriseMap(enterprise=ENTERPRISE)))
