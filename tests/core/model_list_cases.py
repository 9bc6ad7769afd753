"""What the code makes of the vectors of lists of models.

model_lists/<case>.json             {"about", "provider", "answer"}: the JSON of a service
model_lists/<case>.expected.json    {"kept", "names", "hidden", "lacking", "aliases"}: the list as it is kept; the names
                                    that are new, hidden and missing in the catalogue; what `haiku` and `opus` mean
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from proxy.config import Config
from proxy.core.models import as_json, model_list
from proxy.providers.p1_codex.catalog import offered_model as of_p1
from proxy.providers.p2_kimi.catalog import offered_model as of_p2
from proxy.providers.p3_grok.catalog import offered_model as of_p3
from proxy.providers.p4_opencode.catalog import offered_model as of_p4
from proxy.providers.p5_cursor.provider import _offered_model as of_p5
from proxy.providers.registry import PROVIDERS
from proxy.providers.upstream.model_list import ListQuestion, _read

READERS = {"p1": (of_p1, "models"), "p2": (of_p2, "data"), "p3": (of_p3, "data"), "p4": (of_p4, "data"),
           "p5": (of_p5, "models")}  # fmt: skip


def list_result(vector: Mapping[str, Any]) -> dict[str, Any]:
    """The kept list, and the catalogue with it."""
    read, member = READERS[vector["provider"]]
    answer = json.dumps(vector["answer"]).encode()
    offered = model_list(_read(answer, ListQuestion("", {}, read, member)), 0.0)
    entry = next(one for one in PROVIDERS if one.label == vector["provider"])
    table, now = entry.catalog_now(Config()), entry.offering(offered, PROVIDERS).catalog_now(Config())
    names = {*now.models, *now.prefixed} - {*table.models, *table.prefixed}
    return {
        "kept": json.loads(json.dumps(as_json(offered)["models"])),
        "names": sorted(names),
        "hidden": sorted(now.hidden),
        "lacking": sorted(now.lacking),
        "aliases": {alias: now.resolved(alias) for alias in ("haiku", "opus")},
    }
