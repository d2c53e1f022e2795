"""The page's words: the same keys and placeholders in every language, none missing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kvcore import api, cache
from kvcore.engines import ENGINES
from kvcore.errors import WARNINGS, error_codes
from kvcore.levers import LEVERS
from kvcore.log_text import CAUSES
from kvcore.logs.reading import WORDINGS
from kvcore.plan_text import REASONS
from kvcore.reuse.findings import POLICIES
from kvcore.reuse.presets import PRESETS
from kvcore.reuse.routing import ROUTINGS

SITE = Path(__file__).parent.parent / "site"
LOCALES = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in (SITE / "locales").glob("*.json")
}
ENGLISH = LOCALES["en"]
OTHERS = sorted(set(LOCALES) - {"en"})

PLACEHOLDER = re.compile(r"\{(\w+)\}")
HANGUL = re.compile(r"[\uac00-\ud7a3]")

# Keys made of a fixed start and a name from kvcore or from the script.
MADE = (
    "answer.sentence",
    "cause.",
    "quantity.",
    "gpubar.",
    "sure.",
    "verdict.",
    "chip.",
    "component.",
    "entry.",
    "error.",
    "field.",
    "files.kind.",
    "format.",
    "hint.",
    "item.",
    "kind.",
    "log.unit_",
    "lever.",
    "lever_change.",
    "lever_figure.",
    "levers.",
    "lever_reason.",
    "lever_risk.",
    "notice.",
    "placeholder.",
    "echo.",
    "chips.",
    "shortcut.",
    "shortcut_says.",
    "reuse.column_",
    "reuse.field_",
    "reuse.file.",
    "reuse.file_hint.",
    "reuse.hint_",
    "reuse.phase_",
    "reuse.policy_",
    "reuse.preset.",
    "reuse.routing_",
    "share.tab_",
    "share.copy_",
    "share.hint_",
    "share.embed_",
    "speed.bound_",
    "speed.column_",
    "speed.field_",
    "speed.hint_",
    "speed.price_",
    "theme.",
    "traffic.column_",
    "traffic.field_",
    "traffic.file.",
    "traffic.file_hint.",
    "traffic.hint_",
    "traffic.mean",
    "traffic.p95",
    "traffic.p99",
    "traffic.part_",
    "traffic.use_",
    "warning.",
)


def placeholders(text: str) -> set[str]:
    return set(PLACEHOLDER.findall(text))


def test_there_is_korean() -> None:
    assert OTHERS == ["ko"]


@pytest.mark.parametrize("lang", OTHERS)
class TestTranslation:
    def test_same_keys_in_the_same_order(self, lang: str) -> None:
        assert list(LOCALES[lang]) == list(ENGLISH)

    def test_same_placeholders(self, lang: str) -> None:
        different = {
            key
            for key, text in ENGLISH.items()
            if placeholders(LOCALES[lang][key]) != placeholders(text)
        }
        assert different == set()

    def test_nothing_is_empty_or_padded(self, lang: str) -> None:
        for locale in (ENGLISH, LOCALES[lang]):
            assert {
                key for key, text in locale.items() if text != text.strip()
            } == set()
            assert "" not in locale.values()


class TestKorean:
    def test_sentences_are_translated(self) -> None:
        korean = LOCALES["ko"]
        latin = {
            key
            for key, text in korean.items()
            if len(ENGLISH[key].split()) > 3
            and not HANGUL.search(text)
            and not key.startswith(("kind.", "format.", "page.document_title"))
        }
        assert latin == set()

    @pytest.mark.parametrize("term", ["KV cache", "GQA", "MHA", "MLA"])
    def test_terms_stay_latin(self, term: str) -> None:
        for key, text in ENGLISH.items():
            if re.search(rf"\b{term}\b", text):
                assert term in LOCALES["ko"][key], key


class TestCodes:
    """Every code kvcore defines has words, which use only what the code carries."""

    @pytest.mark.parametrize("code", error_codes())
    def test_error_has_words(self, code: str) -> None:
        for lang, strings in LOCALES.items():
            assert f"error.{code}" in strings, lang

    @pytest.mark.parametrize("code", sorted(WARNINGS))
    def test_warning_has_words(self, code: str) -> None:
        allowed = set(re.findall(r"\{(\w+)", WARNINGS[code]))
        for strings in LOCALES.values():
            assert placeholders(strings[f"warning.{code}"]) <= allowed

    @pytest.mark.parametrize("kind", ["error", "warning"])
    def test_no_words_without_a_code(self, kind: str) -> None:
        known = {"error": error_codes(), "warning": tuple(WARNINGS)}[kind]
        keys = {key for key in ENGLISH if key.startswith(f"{kind}.")}
        assert keys == {f"{kind}.{code}" for code in (*known, "other")}

    @pytest.mark.parametrize("code", sorted(CAUSES))
    def test_cause_has_words(self, code: str) -> None:
        for strings in LOCALES.values():
            words = placeholders(strings[f"cause.{code}"])
            assert words == set(re.findall(r"\{(\w+)", CAUSES[code]))

    def test_no_words_without_a_cause(self) -> None:
        keys = {key for key in ENGLISH if key.startswith("cause.")}
        assert keys == {f"cause.{code}" for code in CAUSES}

    def test_levers_have_words(self) -> None:
        made = {
            *(f"lever.{lever.code}" for lever in LEVERS),
            *(f"lever_risk.{lever.risk}" for lever in LEVERS),
            *(f"lever_reason.{reason}" for reason in REASONS),
        }
        kinds = ("lever.", "lever_risk.", "lever_reason.")
        assert made == {key for key in ENGLISH if key.startswith(kinds)}

    def test_made_up_traffic_has_names(self) -> None:
        keys = {key for key in ENGLISH if key.startswith("reuse.preset.")}
        assert keys == {f"reuse.preset.{name}" for name in PRESETS}

    def test_policies_and_routings_have_names(self) -> None:
        for kind, known in (("policy", POLICIES), ("routing", ROUTINGS)):
            keys = {key for key in ENGLISH if key.startswith(f"reuse.{kind}_")}
            assert keys == {f"reuse.{kind}_{name}" for name in known}

    def test_numbers_of_logs_have_names(self) -> None:
        read = {name for w in WORDINGS for name, _ in w.numbers.values()}
        keys = {key for key in ENGLISH if key.startswith("quantity.")}
        assert keys == {f"quantity.{name}" for name in read}

    @pytest.mark.parametrize("component", cache.COMPONENTS)
    def test_component_has_a_name(self, component: str) -> None:
        assert f"component.{component}" in ENGLISH

    @pytest.mark.parametrize("engine", list(ENGINES))
    def test_what_an_engine_adds_has_a_name(self, engine: str) -> None:
        """Models that between them make every engine add what it can add."""
        added: set[str] = set()
        for model in (
            "llama-3.1-8b-instruct",
            "gemma-3-27b-it",
            "ministral-8b-instruct-2410",
            "deepseek-v3.2",
            "deepseek-v4-flash",
            "glm-5.2",
            "ling-2.6-flash",
            "qwen3.5-27b",
        ):
            asked = {"model": model, "tokens": 8_000, "sequences": 3, "engine": engine}
            answer = api.call("estimate", asked)
            added |= set(answer.get("allocated", {}).get("items", {}))
        assert {f"item.{code}" for code in added} <= set(ENGLISH)

    def test_kinds_of_the_catalog_have_names(self) -> None:
        models = api.call("models", {})["models"]
        kinds = {kind for model in models for kind in model["attention"]}
        assert {f"kind.{kind}" for kind in kinds} <= set(ENGLISH)


class TestUse:
    SOURCES = "\n".join(
        path.read_text("utf-8")
        for folder, pattern in (("src", "*.js"), ("templates", "*.j2"))
        for path in sorted((SITE / folder).rglob(pattern))
    )
    USED = set(re.findall(r"""["'`]([a-z]+\.[a-z_0-9.]+)["'`]""", SOURCES)) - {
        "config.json"
    }

    def test_every_key_is_used(self) -> None:
        counted = {re.sub(r"(?<=\w)\.(one|other)$", "", key) for key in ENGLISH}
        unused = {
            key
            for key in counted
            if key not in self.USED and not f"{key}.".startswith(MADE)
        }
        assert unused == set()

    def test_every_key_used_exists(self) -> None:
        groups = {key.split(".")[0] for key in ENGLISH}
        known = {
            *ENGLISH,
            *(key.rsplit(".", 1)[0] for key in ENGLISH if key.endswith(".other")),
        }
        asked = {key for key in self.USED if key.split(".")[0] in groups}
        made = {key for key in asked if key.endswith(".")}
        assert asked - made - known == set()
