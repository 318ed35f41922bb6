"""Write the decision sheet of ``docs/sheets`` again, as HTML and PDF: `make sheets`.

The studio's own command writes the HTML and what it prints as JSON, in one run; Chromium prints the
HTML, as anybody's browser would. Minutes: six designs of 2,048 H100 are planned.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "docs" / "sheets"
NAME = "llama3-70b-2048-h100"
DESIGNS = ("1:1", "2:1", "4:1", "rail-optimised", "rail-only", "torus")
COMMAND = (
    "bill",
    "llama3-70b-1024-h100",
    "--set",
    "fabric.clos.devices=2048",
    "--set",
    "workload.global_batch_sequences=2048",
    "--set",
    "search.time_limit_s=600",
    "--compare",
    ",".join(DESIGNS),
    "--tokens",
    "15e12",
    "--order",
    "failure",
)
"""Of ``nest-studio``; time enough for every plan to be proven."""


def main() -> None:
    """Write both files."""
    FOLDER.mkdir(exist_ok=True)
    sheet = FOLDER / f"{NAME}.html"
    subprocess.run(
        [sys.executable, "-m", "nest_studio", *COMMAND, "--sheet", str(sheet)], check=True
    )
    browser = shutil.which("chromium") or shutil.which("google-chrome")
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
