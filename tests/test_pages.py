"""The pages without an engine: every model, every observation, and kvcore's numbers."""

from __future__ import annotations

import doctest
import html
import json
import os
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from build_steps import (
    catalog_file,
    evidence_page,
    model_facts,
    model_pages,
    output,
    static_pages,
    wording,
)
from build_steps.output import DIST
from build_steps.page import read_locales
from build_steps.tools import SITE
from kvcore import api, catalog, evidence
from kvcore.engines import ENGINES

SAMPLE = (
    "llama-3.1-70b-instruct",
    "gpt2",
    "deepseek-v3",
    "deepseek-v3.2",
    "deepseek-v4-flash",
    "gemma-3-27b-it",
    "gpt-oss-20b",
    "qwen3-next-80b-a3b-instruct",
    "nemotron-h-8b-base-8k",
    "mamba-2.8b-hf",
    "llama-4-scout-17b-16e-instruct",
    "inkling-small",
    "t5-base",
    "whisper-large-v3",
)
"""A model of every kind of attention, and some that engines refuse."""

LIMIT = 40_000
STRINGS = read_locales(SITE / "locales")["en"]


@cache
def pages() -> dict[str, str]:
    """All files of these pages, as the present sources make them."""
    made = static_pages.static_pages("")
    return {path: data.decode() for path, data in made.items()}


@cache
def catalog_json() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(pages()["catalog.json"])
    return found


def ask(method: str, **params: object) -> dict[str, Any]:
    return api.call(method, params)


class Reader(HTMLParser):
    """Ids, links, and tables by caption as rows of cells.

    A cell is its text, or the exact number of its one figure.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str | int]]] = {}
        self.ids: list[str] = []
        self.links: list[str] = []
        self._text: list[str] = []
        self._values: list[int] = []
        self._rows: list[list[str | int]] = []
        self._caption = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.ids.append(given["id"])
        if tag in ("a", "link") and not given.get("href", "data:").startswith("data:"):
            self.links.append(given["href"])
        if tag == "table":
            self._rows, self._caption = [], ""
        if tag == "tr":
            self._rows.append([])
        if tag in ("td", "th", "caption"):
            self._text, self._values = [], []
        if tag == "data":
            self._values.append(int(given["value"]))

    def handle_data(self, data: str) -> None:
        self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        text = " ".join("".join(self._text).split())
        if tag == "caption":
            self._caption = text
        if tag in ("td", "th"):
            self._rows[-1].append(self._values[0] if self._values else text)
        if tag == "table":
            self.tables[self._caption] = self._rows


@cache
def read(path: str) -> Reader:
    return Reader(pages()[path])


def table(id: str, caption: str) -> list[list[str | int]]:
    tables = read(f"models/{id}.html").tables
    (found,) = (rows for name, rows in tables.items() if name.startswith(caption))
    return found


def whole(text: str | int) -> int:
    assert isinstance(text, str)
    return int(text.removesuffix(" tokens").replace(",", ""))


class TestModels:
    def test_every_model_has_a_page_and_every_page_a_model(self) -> None:
        made = {path for path in pages() if path.startswith("models/")}
        ids = {model["id"] for model in ask("models")["models"]}
        assert len(ids) > 600
        assert made == {"models/index.html", *(f"models/{id}.html" for id in ids)}

    def test_every_model_is_listed_with_what_a_token_adds(self) -> None:
        listed = {
            row[0]: row[1]
            for rows in read("models/index.html").tables.values()
            for row in rows[1:]
        }
        models = ask("models")["models"]
        assert len(listed) == len(models)
        links = set(read("models/index.html").links)
        for model in models:
            assert f"{model['id']}.html" in links
        for id in SAMPLE:
            entry = catalog.load()[id]
            limit = catalog.model(id).max_context or 131_072
            found = ask("estimate", model=id, tokens=min(32_768, limit))
            (added,) = (
                per_token
                for name, per_token in listed.items()
                if isinstance(name, str) and name.split(" ")[0] == entry.name
            )
            assert added == found["marginal_bytes_per_token"], id

    @pytest.mark.parametrize("id", SAMPLE)
    def test_by_context_and_engine(self, id: str) -> None:
        head, *rows = table(id, "One sequence, by its tokens")
        lengths = [whole(cell) for cell in head[1:]]
        limit = catalog.model(id).max_context
        assert lengths[-1] == limit or (limit is None and lengths[-1] == 131_072)
        assert rows[0][1:] == [
            ask("estimate", model=id, tokens=tokens)["total_bytes"]
            for tokens in lengths
        ]
        assert len(rows) == 1 + len(ENGINES)
        for engine, row in zip(ENGINES, rows[1:], strict=True):
            answers = [
                ask("estimate", model=id, tokens=tokens, engine=engine)
                for tokens in lengths
            ]
            name = f"{wording.engine_name(engine)} {ENGINES[engine].versions[0]}"
            assert str(row[0]).startswith(name)
            if "error" in answers[-1]:
                (refusal,) = row[1:]
                reason = str(answers[-1]["error"]["params"]["reason"])
                assert reason[1:] in str(refusal)
                assert str(refusal).startswith("Not counted: ")
            else:
                assert row[1:] == [a["allocated"]["bytes_per_rank"] for a in answers]

    @pytest.mark.parametrize("id", SAMPLE)
    def test_by_format(self, id: str) -> None:
        rows = table(id, "One sequence of")[1:]
        limit = catalog.model(id).max_context or 131_072
        own = ask("estimate", model=id)["formats"]["kv"]
        formats = (own, *(name for name in model_facts.FORMATS if name != own))
        for name, row in zip(formats, rows, strict=True):
            asked = {"model": id, "tokens": min(32_768, limit), "kv_format": name}
            found = ask("estimate", **asked)
            if "error" in found:
                assert row[1:] == [wording.error_text(STRINGS, found["error"])]
            else:
                added, total = row[1:3]
                assert added == found["marginal_bytes_per_token"]
                assert total == found["total_bytes"]

    @pytest.mark.parametrize("id", SAMPLE)
    def test_on_gpus_is_what_a_plan_says(self, id: str) -> None:
        head, *rows = table(id, "Most requests at once")
        lengths = [whole(cell) for cell in head[3:]]
        engine = "vllm"
        if "error" in ask("estimate", model=id, engine=engine):
            engine = "none"
        setups = iter(model_facts.GPUS)
        for at, row in enumerate(rows):
            if len(row) == 1:
                gpu, gpus = next(setups)
                asked = {"model": id, "engine": engine, "gpu": gpu, "gpus": gpus}
                assert str(row[0]).startswith(f"{gpus} \u00d7 ")
                weights = iter(model_facts.WEIGHTS)
                continue
            asked["weight_format"] = next(weights)
            plans = [ask("plan", **asked, context=tokens) for tokens in lengths]
            if "error" in plans[0]:
                assert len(row) == 2, at
                assert len(str(row[1])) > 10
                continue
            rank = plans[0]["rank"]
            assert row[1] == rank["weight_bytes"]
            if rank["pool_bytes"]:
                assert row[2] == rank["pool_bytes"]
                shown = [0 if cell == "none" else whole(cell) for cell in row[3:]]
                assert shown == [plan["max_requests"] for plan in plans]
            else:
                # What a plan lacks beyond its cache, which has no room at all.
                over = plans[0]["short_bytes"] - rank["used_bytes"]
                words = f"weights and reserve are {wording.bytes_text(over)} over"
                assert row[2] == f"does not fit: {words}"

    @pytest.mark.parametrize("id", SAMPLE)
    def test_formula(self, id: str) -> None:
        limit = catalog.model(id).max_context or 131_072
        found = ask("estimate", model=id, tokens=min(32_768, limit))
        text = pages()[f"models/{id}.html"]
        results = re.findall(r'class="formula-result">= <b>([\d,]+) bytes</b>', text)
        assert [int(each.replace(",", "")) for each in results] == [
            line["bytes"] for line in found["formula"]
        ]
        assert sum(line["bytes"] for line in found["formula"]) == found["total_bytes"]

    def test_several_gpus_only_where_one_does_not_serve_all(self) -> None:
        assert len(table("gpt2", "Most requests")) == 1 + 2 * 4
        assert len(table("llama-3.1-70b-instruct", "Most requests")) == 1 + 3 * 4

    def test_facts_and_sources(self) -> None:
        for id in SAMPLE:
            entry, text = catalog.load()[id], pages()[f"models/{id}.html"]
            assert f'href="{entry.model_url}"' in text
            assert f'href="{entry.source_url}"' in text
            assert entry.retrieved in text
            assert model_pages.CONFIDENCE[entry.confidence] in text
            for alias in entry.aliases:
                assert f"<code>{alias}</code>" in text

    def test_opens_in_the_calculator(self) -> None:
        for id in SAMPLE:
            assert f"../index.html#v=1&model={id}" in read(f"models/{id}.html").links

    def test_warnings_are_said(self) -> None:
        found = ask("estimate", model="t5-base", tokens=512)
        (warning,) = found["warnings"]
        assert warning["code"] == "encoder_tokens_assumed"
        words = wording.warning_text(STRINGS, warning)
        assert words in pages()["models/t5-base.html"]


class TestEvidence:
    def test_every_observation_is_shown_with_its_source(self) -> None:
        (rows,) = (
            rows
            for caption, rows in read("evidence.html").tables.items()
            if caption.startswith("Observed")
        )
        assert len(rows) == 1 + sum(1 + len(row.also) for row in evidence.rows())
        page = read("evidence.html")
        for row in evidence.rows():
            assert page.ids.count(row.id) == 1
            if row.raw["url"]:
                assert row.raw["url"] in page.links
            if isinstance(row.questions and row.questions[0].params["model"], str):
                model = row.questions[0].params["model"]
                assert f"models/{catalog.find(model).id}.html" in page.links

    def test_numbers_are_those_of_the_api(self) -> None:
        found = ask("evidence")["rows"]
        shown = {
            row["id"]: row
            for group in evidence_page.context(STRINGS, ask("evidence"))["groups"]
            for row in group["rows"]
        }
        assert set(shown) == {row["id"] for row in found}
        for row in found:
            numbers = shown[row["id"]]["numbers"]
            compared = [row["found"], *row["also_found"]]
            for number, truth in zip(numbers, compared, strict=True):
                assert number["agreement"] == truth["agreement"]
                digits = re.sub(r"[^\d.-]", "", number["theirs"].split(" ")[0])
                assert float(digits) == truth["theirs"]
                if truth["ours"] is None:
                    assert number["ours"] == "—"
                else:
                    digits = re.sub(r"[^\d.-]", "", number["ours"].split(" ")[0])
                    assert float(digits) == pytest.approx(truth["ours"], abs=6e-4)

    def test_score_is_that_of_the_api(self) -> None:
        score = ask("evidence")["score"]
        text = pages()["evidence.html"]
        assert f"<strong>{score['matched']} of {score['total']}</strong>" in text
        tables = read("evidence.html").tables
        engines = {row[0]: (row[1], row[2]) for row in tables["By engine"][1:]}
        assert engines == {
            name: (str(count["matched"]), str(count["total"]))
            for name, count in score["engines"].items()
        }
        families = {row[0]: (row[1], row[2]) for row in tables["By architecture"][1:]}
        assert families == {
            evidence_page.FAMILIES[name]: (str(count["matched"]), str(count["total"]))
            for name, count in score["families"].items()
        }

    def test_misses_are_shown_with_their_reasons(self) -> None:
        text = pages()["evidence.html"]
        missed = [row for row in ask("evidence")["rows"] if not row["matches"]]
        assert missed
        assert text.count("Known miss.") == len(missed)
        for row in missed:
            assert f'href="#{row["id"]}"' in text
            assert evidence_page.REASONS[row["reason"]] in text

    def test_no_words_without_a_row(self) -> None:
        rows = evidence.rows()
        assert set(evidence_page.REASONS) == {row.reason for row in rows} - {None}
        assert set(evidence_page.FAMILIES) == {row.family for row in rows}
        inferred = {name for row in rows for name in row.raw.get("inferred", ())}
        assert set(evidence_page.INFERRED) == inferred

    def test_a_rounded_pool_is_told_from_equal_digits(self) -> None:
        stated = {"quantity": "q", "value": 46368, "unit": "tokens", "decimals": 0}
        compared = {"agreement": "exact", "ours": 46384.0, "difference": 0.0}
        word = evidence_page.number_of(stated, compared)["word"]
        assert word == evidence_page.ROUNDED
        compared["ours"] = 46368.0
        assert evidence_page.number_of(stated, compared)["word"] == "equal"


class TestCatalog:
    def test_keeps_its_schema(self) -> None:
        schema = json.loads(pages()["catalog.schema.json"])
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.Draft202012Validator(schema).validate(catalog_json())

    @pytest.mark.parametrize("field", ["id", "cache", "layers", "confidence"])
    def test_schema_misses_a_field(self, field: str) -> None:
        schema = json.loads(pages()["catalog.schema.json"])
        model = dict(catalog_json()["models"][0])
        del model[field]
        broken = {**catalog_json(), "models": [model]}
        with pytest.raises(jsonschema.ValidationError, match=field):
            jsonschema.Draft202012Validator(schema).validate(broken)

    def test_every_field_is_described(self) -> None:
        schema = json.loads(pages()["catalog.schema.json"])
        assert set(schema["properties"]) == set(catalog_json())
        model = schema["$defs"]["model"]
        for found in catalog_json()["models"]:
            assert set(found) == set(model["properties"]) == set(model["required"])

    def test_keeps_what_the_api_says(self) -> None:
        listed = ask("models")
        assert catalog_json()["schema_version"] == catalog_file.SCHEMA_VERSION == 1
        assert catalog_json()["catalog_date"] == listed["catalog_date"]
        models = catalog_json()["models"]
        for found, model in zip(models, listed["models"], strict=True):
            assert found | model == found

    @pytest.mark.parametrize("id", SAMPLE)
    def test_caches(self, id: str) -> None:
        (found,) = (m for m in catalog_json()["models"] if m["id"] == id)
        cache = found["cache"]
        for point in cache["sequence"]:
            answer = ask("estimate", model=id, tokens=point["tokens"])
            assert point["bytes"] == answer["total_bytes"]
            assert point["components"] == answer["components"]
            assert cache["formats"] == answer["formats"]
        added = cache["bytes_per_token"]
        answer = ask("estimate", model=id, tokens=added["at_tokens"])
        assert added["bytes"] == answer["marginal_bytes_per_token"]
        layers = sum(each["count"] for each in found["layers"])
        assert layers == len(catalog.model(id).layers)


class TestDocuments:
    def test_weight(self) -> None:
        heavy = {
            path: len(text.encode())
            for path, text in pages().items()
            if re.fullmatch(r"models/(?!index).*\.html", path)
            and len(text.encode()) > LIMIT
        }
        assert heavy == {}

    def test_titles_tell_pages_apart(self) -> None:
        found = {
            path: re.findall(r"<title>(.*?)</title>", text)
            for path, text in pages().items()
            if path.endswith(".html")
        }
        assert all(len(titles) == 1 for titles in found.values())
        assert len({titles[0] for titles in found.values()}) == len(found)

    def test_no_script_but_the_filters(self) -> None:
        for path, text in pages().items():
            if not path.endswith(".html"):
                continue
            assert text.count("<script") == (path == "evidence.html"), path
            (policy,) = re.findall(r'Security-Policy" content="(.*?)"', text)
            policy = html.unescape(policy)
            assert policy.startswith("default-src 'none'; style-src 'sha256-")
            assert "unsafe" not in policy
            assert not re.search(r"\s(style|on\w+)=", text.split("</style>")[1])

    def test_a_known_address_is_canonical(self) -> None:
        renderer = static_pages.Renderer("https://a.example/b/")
        facts = {id: model_facts.facts_of(id) for id in ("gpt2", "deepseek-v3")}
        made = model_pages.pages(renderer, facts)
        for path, text in made.items():
            address = f"https://a.example/b/{path}"
            assert f'<link rel="canonical" href="{address}">' in text
        (data,) = re.findall(r'ld\+json">(.*?)</script>', made["models/index.html"])
        assert (
            json.loads(data)["distribution"]["contentUrl"]
            == "https://a.example/b/catalog.json"
        )
        assert "canonical" not in pages()["models/gpt2.html"]

    def test_sitemap_lists_every_page(self) -> None:
        text = output.sitemap("https://a.example/b", pages())
        listed = re.findall(r"<loc>https://a\.example/b/(.*?)</loc>", text)
        made = [path for path in pages() if path.endswith(".html")]
        assert sorted(listed) == sorted(["", *made])

    def test_examples_in_docstrings(self) -> None:
        for module in (wording, evidence_page, model_pages):
            assert doctest.testmod(module).failed == 0
        assert doctest.testmod(wording).attempted > 5


def without_scripts(path: Path) -> str:
    return re.sub(r"<script.*?</script>", "", path.read_text("utf-8"), flags=re.DOTALL)


def test_no_link_is_broken() -> None:
    """Links that stay in dist/ lead to files, and to places in them."""
    if not (DIST / "index.html").is_file():
        pytest.fail("There is no dist/ to test: run `python3 build.py build` first.")
    documents = {
        path.relative_to(DIST): without_scripts(path) for path in DIST.rglob("*.html")
    }
    ids = {
        path: set(re.findall(r'\sid="(.*?)"', text)) for path, text in documents.items()
    }
    models = {f"v=1&model={model['id']}" for model in ask("models")["models"]}
    ids[Path("index.html")] |= models
    broken, count = [], 0
    for page, text in documents.items():
        for link in re.findall(r'<a [^>]*?href="(.*?)"', text):
            if re.match(r"[a-z]+:", link):
                continue
            count += 1
            target, _, fragment = html.unescape(link).partition("#")
            path = Path(os.path.normpath(page.parent / target)) if target else page
            found = path if path.suffix else path / "index.html"
            known = (DIST / found).is_file()
            if not known or (fragment and fragment not in ids[found]):
                broken.append((page, link))
    assert broken == []
    assert count > 10_000
