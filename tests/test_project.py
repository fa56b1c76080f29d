"""Files of the project say the same as the package: versions, dependencies, commands, papers."""

import re
import tomllib
from pathlib import Path

import pytest

import unmask

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
CORE = {"numpy", "scipy", "polars", "threadpoolctl", "typer", "rich"}
REPORT = {"pydantic", "altair", "vl-convert-python", "jinja2", "tomli-w"}


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def read(name):
    return yaml.safe_load(text(name))


def names(requirements):
    return {re.split(r"[<>=\[ ]", one)[0] for one in requirements}


def test_the_core_is_lean_and_the_report_an_extra():
    assert names(PROJECT["dependencies"]) == CORE
    assert names(EXTRAS["report"]) == REPORT


def test_all_say_the_same_version():
    assert read("CITATION.cff")["version"] == unmask.__version__
    assert read("conda/recipe.yaml")["context"]["version"] == unmask.__version__
    assert f"\n## {unmask.__version__} — " in text("CHANGELOG.md")


def test_the_conda_recipe_has_the_dependencies_of_the_package():
    recipe = read("conda/recipe.yaml")["requirements"]
    python = f"python{PROJECT['requires-python']}"
    wanted = {python, *PROJECT["dependencies"]}
    assert {one.replace(" ", "") for one in recipe["run"]} == wanted
    assert {one.replace(" ", "") for one in recipe["run_constraints"]} == set(EXTRAS["report"])


def test_the_citation_has_the_five_papers():
    papers = read("CITATION.cff")["references"]
    assert len(papers) == 5
    assert all(one["title"] and one["year"] and one["authors"] for one in papers)
    assert [one["doi"] for one in papers if "doi" in one] == ["10.1016/j.csl.2021.101299"]


def test_the_container_copies_what_is_there():
    sources = re.findall(r"^COPY (.+) \S+$", text("Dockerfile"), re.MULTILINE)
    copied = [name for line in sources for name in line.split()]
    assert copied
    assert all((ROOT / name).exists() for name in copied)
    kept = {line[1:] for line in text(".dockerignore").splitlines() if line.startswith("!")}
    assert kept == set(copied)


def test_workflows_run_what_there_is():
    flows = {path.name: read(path) for path in (ROOT / ".github" / "workflows").glob("*.yml")}
    assert set(flows) == {"ci.yml", "docs.yml", "release.yml"}
    jobs = [job for flow in flows.values() for job in flow["jobs"].values()]
    runs = "\n".join(step.get("run", "") for job in jobs for step in job["steps"])
    targets = set(re.findall(r"^(\w[\w-]*):", text("Makefile"), re.MULTILINE))
    assert set(re.findall(r"\bmake (?!npm)([\w-]+)$", runs, re.MULTILINE)) <= targets
    assert all((ROOT / name).exists() for name in re.findall(r"@(tests/\S+)", runs))
    assert all("timeout-minutes" in job for job in jobs)
    matrix = flows["ci.yml"]["jobs"]["core"]["strategy"]["matrix"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert len(matrix["os"]) == 3


def test_tests_of_the_core_are_there():
    listed = text("tests/core.txt").split()
    assert listed
    assert not [name for name in listed if not (ROOT / name).is_file()]


def test_hooks_are_local():
    assert {one["repo"] for one in read(".pre-commit-config.yaml")["repos"]} == {"local"}


def test_issue_forms_ask_something():
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[0-9]*.yml"))
    assert len(forms) == 3
    for path in forms:
        form = read(path)
        assert {"name", "description", "body"} <= set(form)
        assert any(part.get("validations", {}).get("required") for part in form["body"])


def test_the_changelog_of_a_release_is_one_screen():
    first = text("CHANGELOG.md").split("\n## ")[1]
    assert len(first.splitlines()) <= 60


def test_make_targets_are_those_of_contributing():
    named = set(re.findall(r"^make ([\w-]+)", text("CONTRIBUTING.md"), re.MULTILINE))
    targets = set(re.findall(r"^([a-z][\w-]*):", text("Makefile"), re.MULTILINE))
    assert named | {"demo", "clean"} == targets


def test_pages_name_modules_that_are_there():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    said = {
        one
        for page in pages
        for one in re.findall(
            r"python -m ((?:benchmarks|studies|fuzz)[\w.]*)", page.read_text(encoding="utf-8")
        )
    }
    there = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")
        for folder in ("benchmarks", "studies", "fuzz")
        for path in (ROOT / folder).rglob("*.py")
    }
    assert said <= there
