"""The build's pure steps, and what packaging promises."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

import build as frame
from build_steps import cache, engine, output, page, tools
from build_steps.server import Server
from build_steps.tools import ROOT, SITE, BuildError


def zipped(*names: str, date: tuple[int, ...], compression: int) -> bytes:
    target = BytesIO()
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name, (*date, 1, 2, 4)), name * 100)  # type: ignore[arg-type]
    return target.getvalue()


class TestWheel:
    def test_same_members_same_bytes(self) -> None:
        one = zipped("b", "a", date=(2001, 2, 3), compression=zipfile.ZIP_STORED)
        two = zipped("a", "b", date=(2025, 5, 6), compression=zipfile.ZIP_DEFLATED)
        assert one != two
        assert engine.normalised_zip(one) == engine.normalised_zip(two)

    def test_holds_every_source_file_and_nothing_else(self) -> None:
        name, packed = engine.wheel()
        assert name == "kvcore-0.1.0-py3-none-any.whl"
        sources = {
            name.replace("data/", "kvcore/data/", 1)
            if name.startswith("data/")
            else name
            for name in engine.package_sources(ROOT)
            if name.startswith(("kvcore/", "data/"))
        }
        with zipfile.ZipFile(BytesIO(packed)) as archive:
            members = {name for name in archive.namelist() if ".dist-info" not in name}
            for member in members:
                source = member.replace("kvcore/data/", "data/", 1)
                assert archive.read(member) == (ROOT / source).read_bytes(), member
        assert members == sources

    def test_needs_nothing(self) -> None:
        with zipfile.ZipFile(BytesIO(engine.wheel()[1])) as archive:
            (metadata,) = (name for name in archive.namelist() if "METADATA" in name)
            text = archive.read(metadata).decode()
        required = [line for line in text.splitlines() if "Requires-Dist" in line]
        assert all('extra == "dev"' in line for line in required)

    @pytest.mark.parametrize("form", ["editable", "wheel", "unpacked wheel"])
    def test_facts_are_read_in_every_form(self, form: str, tmp_path: Path) -> None:
        wheel = tmp_path / "kvcore.whl"
        wheel.write_bytes(engine.wheel()[1])
        unpacked = tmp_path / "unpacked"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked)
        place = {"editable": "", "wheel": wheel, "unpacked wheel": unpacked}[form]
        program = (
            f"import sys; place = {str(place)!r}; place and sys.path.insert(0, place);"
            "from importlib.resources import files; import kvcore;"
            "models = files('kvcore.data') / 'models';"
            "print(kvcore.__file__);"
            "print(sorted(item.name for item in models.iterdir()));"
            "print((models / 'llama.json').read_text('utf-8'))"
        )
        command = [sys.executable, "-I", "-c", program]
        printed = subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=tmp_path
        ).stdout
        origin, names, text = printed.split("\n", 2)
        assert origin.startswith(str(place or ROOT))
        folder = ROOT / "data" / "models"
        assert names == str(sorted(item.name for item in folder.iterdir()))
        assert text.strip() == (folder / "llama.json").read_text("utf-8").strip()


class TestEngine:
    def test_finds_imports_anywhere_in_a_source(self) -> None:
        source = (
            "import json, os.path as p\nfrom kvcore.api import call\n"
            "from . import near\ndef late():\n    from collections import abc\n"
        )
        assert engine.imported_modules([source]) == ["collections", "json", "os.path"]

    def test_cache_tells_inputs_apart(self) -> None:
        def key(inputs: dict[str, bytes]) -> Path:
            return cache.cache_file("test", inputs)

        assert key({"a": b"bc"}) == key({"a": b"bc"})
        assert key({"a": b"bc"}) != key({"ab": b"c"})
        assert key({"a": b"b", "c": b"d"}) != key({"a": b"d", "c": b"b"})


class TestPage:
    def test_points_to(self) -> None:
        points = page.points_to(131_072)
        assert points[0] == 1_024
        assert points[-1] == 131_072
        assert points[4::4] == [2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072]
        assert page.points_to(100_000)[-1] == 131_072

    def test_policy_names_script_and_style_by_hash(self) -> None:
        policy = page.policy("", "x")
        empty = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
        assert f"script-src '{empty}' 'wasm-unsafe-eval';" in policy
        assert "connect-src https://huggingface.co;" in policy

    @pytest.mark.parametrize("text", ["a</script >", "</SCRIPT", "<!-- x"])
    def test_script_that_would_end_early_is_refused(self, text: str) -> None:
        with pytest.raises(BuildError, match="end it early"):
            page.inline(text, "script")

    @pytest.mark.parametrize(
        "text", ["<script> a</script>", "", "<script>a</script><script>a</script>"]
    )
    def test_template_must_write_the_script_as_it_is(self, text: str) -> None:
        with pytest.raises(BuildError, match="exactly these bytes"):
            page.check_inline(text, "script", "a")

    def test_build_hash_depends_on_every_part(self) -> None:
        assert page.build_hash(["a", "b"]) == page.build_hash(["a", "b"])
        assert len({page.build_hash(parts) for parts in (["ab"], ["a", "b"])}) == 2

    def test_an_error_of_kvcore_stops_the_build(self) -> None:
        with pytest.raises(BuildError, match="unknown_model"):
            page.answer("estimate", {"model": "no such model"})


class TestOutput:
    def test_sitemap_and_robots_only_name_a_given_address(self) -> None:
        assert "Sitemap" not in output.robots("")
        assert "Sitemap: https://a.example/b/sitemap.xml" in output.robots(
            "https://a.example/b"
        )
        assert "<loc>https://a.example/b/</loc>" in output.sitemap(
            "https://a.example/b/", ["index.txt"]
        )

    def test_writing_replaces_the_folder(self, tmp_path: Path) -> None:
        output.write(tmp_path / "dist", {"old.html": b"old"})
        output.write(tmp_path / "dist", {"new/page.html": b"new"})
        found = [path for path in (tmp_path / "dist").rglob("*") if path.is_file()]
        assert found == [tmp_path / "dist" / "new" / "page.html"]


class TestServer:
    def test_serves_under_its_prefix_only(self, tmp_path: Path) -> None:
        (tmp_path / "page.txt").write_text("here")
        with Server(tmp_path, prefix="/under/") as server:
            assert server.url.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(f"{server.url}page.txt") as answer:
                assert answer.read() == b"here"
            outside = server.url.replace("/under/", "/page.txt")
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(outside)
            assert refused.value.code == 404
            refused.value.close()


class TestTools:
    def test_old_python_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tools, "OLDEST_PYTHON", (99, 0))
        with pytest.raises(BuildError, match=r"Python 99\.0 or newer is needed"):
            tools.check_python()

    def test_old_node_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tools, "OLDEST_NODE", 99)
        with pytest.raises(BuildError, match=r"Node\.js v\d.* is too old"):
            tools.check_node()

    def test_missing_node_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "")
        with pytest.raises(BuildError, match=r"Node\.js and npm are needed"):
            tools.check_node()

    def test_named_browser_must_exist(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KVCORE_CHROMIUM", "/no/such/browser")
        with pytest.raises(BuildError, match="names no file: /no/such/browser"):
            tools.chromium()

    def test_made_again_only_when_inputs_change(self, tmp_path: Path) -> None:
        made: list[int] = []
        pins, folder = tmp_path / "pins", tmp_path / "made"

        def make() -> None:
            folder.mkdir(exist_ok=True)
            made.append(1)

        for text in ("one", "one", "two"):
            pins.write_text(text)
            tools.once(folder, [pins], make)
        assert len(made) == 2


class TestCommands:
    def test_arguments_for_pytest_pass_through(self) -> None:
        assert frame.parse(["test", "--", "-k", "offline"]).pytest == ["-k", "offline"]
        assert frame.parse(["test"]).pytest == []

    def test_serve_takes_a_port(self) -> None:
        assert frame.parse(["serve", "--port", "8123"]).port == 8123
        assert frame.parse(["serve"]).port is None

    def test_frame_starts_without_any_package(self) -> None:
        program = "import sys; sys.path.insert(0, sys.argv[1]); import build"
        command = [sys.executable, "-I", "-S", "-c", program, str(ROOT)]
        subprocess.run(command, check=True)


class TestPins:
    def test_lock_names_no_registry(self) -> None:
        lock = json.loads((SITE / "package-lock.json").read_text())
        packages = {name: facts for name, facts in lock["packages"].items() if name}
        assert len(packages) > 40
        assert not any("resolved" in facts for facts in packages.values())
        assert all("integrity" in facts for facts in packages.values())

    def test_npm_packages_are_pinned_exactly(self) -> None:
        manifest = json.loads((SITE / "package.json").read_text())
        wanted = {**manifest["dependencies"], **manifest["devDependencies"]}
        assert all(version[0].isdigit() for version in wanted.values())
