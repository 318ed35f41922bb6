"""What a page gives to the browser's own parts."""

from __future__ import annotations

import json
from typing import Any

from streamlit.testing.v1 import AppTest

__all__ = ["components", "fabrics"]


def components(page: AppTest, name: str) -> list[dict[str, Any]]:
    """The data of every component of a name: keys, drawings."""
    found = page.get("bidi_component")
    return [json.loads(one.proto.json) for one in found if one.proto.component_name == name]


def fabrics(page: AppTest) -> list[dict[str, Any]]:
    """Pictures of fabrics, each with its cost matrix and what pointing at it says."""
    return components(page, "nest-studio.fabric")
