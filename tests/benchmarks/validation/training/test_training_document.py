"""The training part of ``docs/validation.md``, its picture, and that nothing in it gets worse."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from benchmarks.validation import regenerate, validate_training
from benchmarks.validation.__main__ import run
from benchmarks.validation.training.document import FABRIC_MARK, MARK, PICTURE, figures, joined
from benchmarks.validation.training.scatter import Panel, scatter_svg

WORSE = 1.1
ROUNDING = 0.0006
"""Figures in the document have three digits after the point."""

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def written(root):
    return (root / "docs" / "validation.md").read_text(encoding="utf-8")


def check(now, then):
    """No mean error is more than a tenth above the document's."""
    assert set(now) == set(then)
    worse = {
        name: (then[name], error)
        for name, error in now.items()
        if error > then[name] * WORSE + ROUNDING
    }
    assert not worse


def regions(fields):
    return {region["name"]: region["mape"] for region in fields["regions"]}


@pytest.mark.check
def test_figures_of_the_subset_got_no_worse(written, monkeypatch, tmp_path):
    monkeypatch.setattr(validate_training, "SHARED", tmp_path)
    monkeypatch.setattr(validate_training, "spread", lambda *_: 0.0)  # no interval is looked at
    fields = validate_training.training()
    assert "subset" in fields["data"]
    check(regions(fields), figures(written)["The subset of the tests"])


@pytest.mark.check
def test_figures_of_all_runs_got_no_worse(written, root, shared_data, monkeypatch, tmp_path):
    """And `regenerate` writes document, picture, bands and shapes, leaving other parts alone."""
    document = tmp_path / "docs" / "validation.md"
    document.parent.mkdir()
    document.write_text("# Validation\n\nOf collectives.\n")
    monkeypatch.setattr(regenerate, "DOCUMENT", document)
    monkeypatch.setattr(regenerate, "BANDS", tmp_path / "presets" / "regions.toml")
    assert run(["regenerate", "training"]) == 0
    fields = validate_training.training()
    check(regions(fields), figures(written)["All runs"])
    text = document.read_text()
    assert text.startswith("# Validation\n\nOf collectives.\n\n" + MARK)
    assert figures(text)["All runs"] == pytest.approx(regions(fields), abs=ROUNDING)
    assert (document.parent / PICTURE).is_file()
    assert (tmp_path / "presets" / "regions.toml").read_text().startswith("# Written by")
    shapes = (tmp_path / "presets" / "shapes.toml").read_text()
    assert shapes == (root / "presets" / "validation" / "shapes.toml").read_text()


@pytest.mark.check
def test_validation_writes_nothing(root, shared_data, capsys):
    """Printing and regenerating are two commands: no file of the checkout changes by printing."""
    kept = [root / "docs" / "validation.md", root / "presets" / "validation" / "regions.toml"]
    before = [path.stat().st_mtime_ns for path in kept]
    assert run(["training"]) == 0
    assert "runs predicted" in capsys.readouterr().out
    assert [path.stat().st_mtime_ns for path in kept] == before


def test_a_worse_figure_is_noticed():
    check({"a": 0.109}, {"a": 0.1})
    with pytest.raises(AssertionError):
        check({"a": 0.112}, {"a": 0.1})
    with pytest.raises(AssertionError):
        check({}, {"a": 0.1})


def test_quality_a_is_covered(shared_data):
    rows, unread = validate_training.read_training(shared_data)
    assert len(rows) > 1300
    predicted, every = regenerate.coverage(unread, shared_data)
    assert predicted >= 0.95 * every > 300


def test_parts_are_replaced_one_at_a_time():
    both = joined("# A\n\nfirst\n", training="## B\n\nsecond\n")
    assert both.startswith(f"# A\n\nfirst\n\n{MARK}\n")
    assert joined(both, training="## B\n\nsecond\n") == both
    assert joined(both, collectives="# A\n\nfirst\n") == both
    changed = joined(both, collectives="# A\n\nother\n")
    assert "other" in changed
    assert "second" in changed
    assert "first" not in changed
    assert joined("", collectives="# A\n") == "# A\n"
    three = joined(both, fabric="## C\n\nthird\n")
    assert three == f"{both}\n{FABRIC_MARK}\n\n## C\n\nthird\n"
    assert joined(three, training="## B\n\nsecond\n") == three
    assert figures(three) == figures(both)


def test_the_picture_places_every_run():
    points = [(1.0, 1.0, False), (10.0, 5.0, True), (100.0, 300.0, False)]
    tree = ET.fromstring(scatter_svg([Panel("one <&>", "three", points)], "what & why"))
    assert tree.findtext(f"{SVG}title") == "what & why"
    texts = [element.text for element in tree.iter(f"{SVG}text")]
    assert "one <&>" in texts
    dots = list(tree.iter(f"{SVG}circle"))
    across = [float(dot.get("cx")) for dot in dots]
    up = [-float(dot.get("cy")) for dot in dots]
    assert across == sorted(across)
    assert up == sorted(up)
    # Both axes have one scale: a decade measured is as far as a decade predicted.
    decade = (across[2] - across[0]) / 2
    assert across[1] - across[0] == pytest.approx(decade, abs=0.2)
    import math

    assert up[2] - up[0] == pytest.approx(decade * math.log10(300), abs=0.3)


@pytest.mark.parametrize("points", [[(3.0, 3.0, False)], [(1e-3, 2e-3, True), (1e4, 9e3, False)]])
def test_any_range_can_be_drawn(points):
    tree = ET.fromstring(scatter_svg([Panel("t", "s", points)] * 4, "d"))
    assert len(list(tree.iter(f"{SVG}circle"))) == 4 * len(points)
    numbers = [t.text for t in tree.iter(f"{SVG}text") if t.text[0].isdigit()]
    assert len(numbers) >= 8
