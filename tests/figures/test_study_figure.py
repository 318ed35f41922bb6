"""The figure of a study, from rows made up for the purpose."""

from __future__ import annotations

import itertools

from nest_core.documents.schema import Parameter
from nest_core.report.figures.study import study_picture
from nest_core.studies.study import Study

AXES = (
    Parameter("batch", "global batch", values=(64, 128), unit="sequences"),
    Parameter("zero", "ZeRO stage", values=(0, 1, 3)),
    Parameter("oversubscription.0", "leaf oversubscription", values=(1.0, 4.0), unit="down : up"),
)


def drawn(axes, metric="tokens_per_s", value=lambda *values: 1e6 + sum(values)):
    study = Study("Made up", "", (), axes, (metric,), {})
    rows = [
        {
            "point": number,
            **dict(zip((axis.column for axis in axes), values, strict=True)),
            metric: value(*values),
            "meets": values[0] == 64,
            "reason": "" if values[0] == 64 else "too much",
            "plan": "a plan",
        }
        for number, values in enumerate(itertools.product(*(axis.values for axis in axes)))
    ]
    return study_picture(study, rows, metric), rows


def test_the_first_axis_runs_along_the_second_is_lines_the_third_panels():
    picture, rows = drawn(AXES)
    assert [one.text for one in picture.plot.layout.annotations] == [
        "leaf oversubscription 1:1",
        "leaf oversubscription 4:1",
    ]
    assert len(picture.plot.data) == 6
    for trace in picture.plot.data:
        at = [rows[number] for number in trace.customdata]
        assert list(trace.x) == [row["global_batch_sequences"] for row in at] == [64, 128]
        assert list(trace.y) == [row["tokens_per_s"] for row in at]
        assert len({(row["zero"], row["leaf_oversubscription"]) for row in at}) == 1
        assert list(trace.marker.symbol) == ["circle", "circle-open"]
    panels = {trace.xaxis for trace in picture.plot.data}
    assert panels == {"x", "x2"}
    assert [name for name, _ in picture.legend] == ["ZeRO 0", "ZeRO 1", "ZeRO 3"]


def test_the_finding_is_the_best_that_meets_the_constraints():
    picture, _ = drawn(AXES[:1])
    assert picture.title == "Most throughput: 1.00 M tokens/s at global batch 64 sequences"
    assert "Hollow" in picture.reading
    picture, _ = drawn(AXES[:2], "bubble", lambda batch, zero: (1 + zero) / 100)
    assert picture.title == "Least bubble: 1 % at global batch 64 sequences, ZeRO 0"


def test_values_that_are_words_stand_one_after_another():
    axis = Parameter("design", "design", values=("torus", "rail-only"))
    picture, _ = drawn((axis,), value=lambda name: float(len(name)))
    assert list(picture.plot.layout.xaxis.ticktext) == ["torus", "rail-only"]
    assert picture.title == "No point meets the constraints"
