"""Presets are found, and TOML files are read or refused in one sentence."""

from __future__ import annotations

import pytest

from nest_core.documents.errors import InputError
from nest_core.documents.files import MAX_FILE_BYTES
from nest_core.documents.presets import load_toml, preset_names, preset_path


def test_names_are_the_sorted_stems(tmp_path, monkeypatch):
    monkeypatch.setattr("nest_core.documents.presets._root", lambda: tmp_path)
    (tmp_path / "models").mkdir()
    for name in ("b.toml", "a.1.toml", "notes.md"):
        (tmp_path / "models" / name).touch()
    assert preset_names("models") == ("a.1", "b")
    assert preset_names("fabrics") == ()


@pytest.mark.parametrize("part", ["..", "", ".hidden", "a/b", "a\\b", "a\0", "a\n", "~root"])
def test_a_name_leads_nowhere_else(part):
    with pytest.raises(InputError, match="preset name must consist of letters"):
        preset_path("models", part)


def test_toml_is_read(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text('name = "µ"\n[[level]]\nsize = 8\n', encoding="utf-8")
    assert load_toml(file) == {"name": "µ", "level": [{"size": 8}]}


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"a = ", "must be valid TOML"),
        (b"a = 1\na = 2", "must be valid TOML"),
        (b"a = " + b"9" * 5000, "must be valid TOML"),
        (b"a = '\xff'", "must be UTF-8 text"),
        (b"a = " + b"[" * 100_000, "must not nest tables and arrays deeply"),
        (b"a." * 200_000 + b"a = 1", "must have keys of at most 16 parts"),
        (b'["\\"" . ' + b'\'"\' . "\\"".' * 200_000 + b"a]", "must have keys of at most 16 parts"),
        (b"#" * (MAX_FILE_BYTES + 1), "must hold at most 5,000,000 bytes"),
    ],
    ids=[
        "syntax",
        "duplicate",
        "long-number",
        "latin-1",
        "deep",
        "long-key",
        "long-quoted-key",
        "large",
    ],
)
def test_what_is_not_toml_is_refused(content, rule, tmp_path):
    file = tmp_path / "a.toml"
    file.write_bytes(content)
    with pytest.raises(InputError, match=rule) as caught:
        load_toml(file)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["missing.toml", ".", "a\0.toml", "a" * 300])
def test_what_is_not_a_file_is_refused(name, tmp_path):
    with pytest.raises(InputError, match="must be a"):
        load_toml(tmp_path / name)
