"""The `prices` of the api: dated list prices, as suggestions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kvcore import accelerators, datafiles
from kvcore.params import Params

Json = dict[str, Any]

PRICES: Final = frozenset({"gpu"})


def answer_prices(given: Mapping[str, object]) -> Json:
    """Prices per accelerator and hour, the cheapest first; of one GPU where named.

    Each has its provider, its date and where it was read. None is a default.
    """
    params = Params(given, PRICES)
    data = datafiles.read_json("prices.json")
    name = params.text("gpu", "")
    wanted = accelerators.find(name).id if name else None
    found = [
        price for price in data["prices"] if wanted in (None, price["accelerator"])
    ]
    return {
        "currency": data["currency"],
        "retrieved": data["retrieved"],
        "prices": sorted(found, key=lambda price: price["price_per_hour"]),
    }
