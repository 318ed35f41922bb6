"""The wheel works by itself: installed elsewhere, started from anywhere."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

RUN_MAIN_PAGE = """
from streamlit.testing.v1 import AppTest
from nest_studio.paths import app_script
page = AppTest.from_file(str(app_script()), default_timeout=60).run()
print(*(error.value for error in page.exception))
"""


def _run(*command: str | Path, cwd: Path) -> str:
    ended = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.strip()


@pytest.fixture(scope="module")
def wheel(root, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder]
    _run(sys.executable, "-m", "pip", "wheel", *options, root, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The Python of an environment that has the wheel, and the dependencies of this one."""
    folder = tmp_path_factory.mktemp("another place") / "with space"
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    options = ["--quiet", "--no-deps", "--no-index"]
    _run(sys.executable, "-m", "pip", "--python", python, "install", *options, wheel, cwd=folder)
    # A plain path line: .pth files found there, the editable install's among them, do not count.
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@pytest.fixture
def elsewhere(tmp_path) -> Path:
    return tmp_path


def test_the_wheel_carries_app_pages_theme_and_presets(root, wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {"nest_studio/app/app.py", "nest_studio/app/.streamlit/config.toml"}
    expected |= {f"nest_studio/app/pages/{path.name}" for path in (root / "pages").glob("*.py")}
    presets = root / "presets"
    expected |= {
        f"nest_core/presets_data/{path.relative_to(presets).as_posix()}"
        for path in presets.rglob("*.toml")
    }
    assert expected <= names
    assert not {name for name in names if name.startswith(("tests/", "benchmarks/"))}


@pytest.mark.parametrize("package", ["nest_core", "nest_studio"])
def test_the_installed_copy_is_the_one_imported(package, installed, elsewhere):
    found = _run(installed, "-c", f"import {package}; print({package}.__file__)", cwd=elsewhere)
    assert Path(found).is_relative_to(installed.parent.parent)


def test_the_presets_of_the_wheel_are_found(root, installed, elsewhere):
    script = "from nest_core.documents.presets import preset_path; print(preset_path())"
    found = Path(_run(installed, "-c", script, cwd=elsewhere))
    assert found.is_relative_to(installed.parent.parent)
    assert {path.name for path in found.iterdir()} == {
        path.name for path in (root / "presets").iterdir()
    }


@pytest.mark.check
def test_the_studio_of_the_wheel_answers(installed, elsewhere, serve):
    command = [str(installed.with_name("nest-studio"))]
    with serve(command, elsewhere, elsewhere / "log.txt") as url:
        assert url.startswith("http://localhost:")


def test_the_main_page_of_the_wheel_runs(installed, elsewhere):
    assert _run(installed, "-c", RUN_MAIN_PAGE, cwd=elsewhere) == ""
