"""Write the decision sheets of ``docs/sheets`` again, as HTML and PDF: `make sheets`.

The studio's own command writes the HTML, from a clean checkout as the sheet's *Again* line says it;
Chromium prints the HTML, as anybody's browser would. Ten minutes for all but the mixture on
16,416 GB200, which takes 25 and is written where named: ``make sheets
ARGS=deepseek-v3-16416-gb200``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path("docs") / "sheets"
SHEETS = {
    "llama3-70b-2048-h100": (
        "llama3-70b-1024-h100",
        "--set",
        "fabric.clos.devices=2048",
        "--set",
        "workload.global_batch_sequences=2048",
        "--set",
        "search.time_limit_s=600",
        "--compare",
        "1:1,2:1,4:1,rail-optimised,rail-optimised 2:1,rail-optimised 4:1",
        "--tokens",
        "5.6e12",
    ),
    "llama3.1-405b-16416-gb200": (
        str(FOLDER / "llama3.1-405b-16416-gb200.toml"),
        "--set",
        "search.time_limit_s=60",
        "--compare",
        "1:1,2:1,4:1",
        "--tokens",
        "15.6e12",
    ),
    "deepseek-v3-16416-gb200": (
        str(FOLDER / "deepseek-v3-16416-gb200.toml"),
        "--set",
        "search.time_limit_s=600",
        "--compare",
        "1:1,2:1,4:1",
        "--tokens",
        "14.8e12",
    ),
    "gpt3-175b-768-a100": (
        str(FOLDER / "gpt3-175b-768-a100.toml"),
        "--set",
        "search.time_limit_s=120",
        "--compare",
        "as-read.toml,rails.toml,two-missing.toml",
        "--tokens",
        "300e9",
    ),
}
"""What ``nest-studio bill`` is given for each, by file."""
QUICK = [name for name in SHEETS if name != "deepseek-v3-16416-gb200"]


def main() -> None:
    """Write both files of every sheet that takes seconds, or of those that are named."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    for name in sys.argv[1:] or QUICK:
        sheet = ROOT / FOLDER / f"{name}.html"
        command = [sys.executable, "-m", "nest_studio", "bill", *SHEETS[name]]
        subprocess.run([*command, "--sheet", str(sheet)], cwd=ROOT, check=True)
        if browser is None:
            sys.exit("Chromium is missing: the HTML is written, the PDF is not.")
        subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--no-pdf-header-footer",
                f"--print-to-pdf={sheet.with_suffix('.pdf')}",
                sheet.as_uri(),
            ],
            check=True,
            capture_output=True,
        )


if __name__ == "__main__":
    main()
