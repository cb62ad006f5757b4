from __future__ import annotations

from lanner.directory.places import Places

TEXT = """# [[site]] in a comment
[enterprise]
name = "x"
[[site]]  # the first
name = "[[site]]"
  [[ "site" ]]
'name' = "b"
[[link]]
"""


def test_tables_and_keys() -> None:
    places = Places(TEXT, "f")
    assert places.line("enterprise") == 2
    assert places.line("enterprise", 0, "name") == 3
    assert places.line("site", 0) == 4
    assert places.line("site", 1) == 6
    assert places.line("site", 1, "name") == 7
    assert places.line("site", 0, "cost") == 4
    assert places.line("site", 2) == 0
    assert places.line("queue") == 0
    assert places.block("site", 1) == (5, 7)


def test_places_in_words() -> None:
    places = Places(TEXT, "f")
    assert places.shown("enterprise") == "f:2 ([enterprise])"
    assert places.shown("site", 1, "name") == "f:7 ([[site]] 2)"
    assert places.shown("queue", 4) == "f ([[queue]] 5)"
    assert Places("", "").shown("queue", 4) == "[[queue]] 5"
