"""What a page gives to the browser's own parts."""

from __future__ import annotations

import json
import re
from typing import Any

from streamlit.testing.v1 import AppTest

__all__ = ["components", "fabrics", "grey_parts", "unseen_parts"]


def components(page: AppTest, name: str) -> list[dict[str, Any]]:
    """The data of every component of a name: keys, drawings."""
    found = page.get("bidi_component")
    return [json.loads(one.proto.json) for one in found if one.proto.component_name == name]


def fabrics(page: AppTest) -> list[dict[str, Any]]:
    """Pictures of fabrics, each with its cost matrix and what pointing at it says."""
    return components(page, "nest-studio.fabric")


def grey_parts(page: AppTest) -> set[str]:
    """Keys of the containers that the page draws in grey, title included."""
    return _marked(page, r"opacity: 0\.35;")


def unseen_parts(page: AppTest) -> set[str]:
    """Keys of the containers that nobody sees, as they belong to another request."""
    return _marked(page, r"visibility: hidden;")


def _marked(page: AppTest, look: str) -> set[str]:
    bodies = [one.proto.body for one in page.get("html") if 'class="nest-mark"' in one.proto.body]
    rules = re.findall(r"([^{}>]+) \{ " + look, " ".join(bodies))
    return set(re.findall(r"\.st-key-([\w-]+)", " ".join(rules)))
