"""Settings of all tests."""

import os
import sys
from contextlib import ExitStack
from dataclasses import replace

# Before numpy is loaded: a second thread of a small product only waits, with a core of its own.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Clusters wait for most of the tests: watching themselves meanwhile takes a tenth of a core each.
os.environ.setdefault("DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED", "False")
os.environ.setdefault("DASK_DISTRIBUTED__WORKER__MEMORY__MONITOR_INTERVAL", "5s")
os.environ.setdefault("DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL", "5s")
os.environ.setdefault("DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL", "500ms")
# Processes that tests start load modules that are compiled already.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Tables are as wide as they are, whatever the terminal that runs the tests.
os.environ.pop("COLUMNS", None)

import pytest
from hypothesis import settings

settings.register_profile("unmask", max_examples=60, deadline=None, print_blob=True)
settings.load_profile("unmask")
sys.dont_write_bytecode = False


MAY_BE_ABSENT = ("pdflatex", "axe-core", "the weights of")
"""Not installed by the Makefile, or from a host that not everybody reaches."""


def pytest_addoption(parser):
    parser.addoption(
        "--required", action="store_true", help="fail if a test lacks what the Makefile installs"
    )
    parser.addoption(
        "--pin-sentences", action="store_true", help="take today's sentences of tests as right"
    )


def required_skips(reports):
    """Tests that lack a package or program, which the Makefile installs, with the reason."""
    missing = {}
    for report in reports:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        lacks = "could not import" in reason or "not installed" in reason
        if lacks and not any(word in reason for word in MAY_BE_ABSENT):
            missing.setdefault(report.nodeid, reason.removeprefix("Skipped: "))
    return missing


def pytest_sessionfinish(session):
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("--required") and terminal is not None:
        for test, reason in required_skips(terminal.stats.get("skipped", [])).items():
            terminal.write_line(f"required, yet skipped: {test}: {reason}", red=True)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_collection_modifyitems(items):
    """The pages of the docs, the longest file of tests, come first, so that no worker ends late."""
    items.sort(key=lambda item: item.path.name != "test_docs.py")


@pytest.fixture(scope="session", autouse=True)
def steps_are_kept_apart(tmp_path_factory):
    """Steps of assessments are kept in a folder of this run, not in the user's cache."""
    import unmask.assessment.cache

    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unmask.assessment.cache, "cache_directory", lambda: folder)
        yield


@pytest.fixture(scope="module")
def quick_extrapolation():
    """Extrapolations try one model and a simple guard; the choice is tested where it is made."""
    from unmask.stress.extrapolation import choose

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose, "CANDIDATES", ("ls+",))
        patch.setattr(choose, "FAMILY", "ls")
        yield


@pytest.fixture(scope="session")
def shared_place():
    """Two workers at a place, which tests use one after another: a cluster starts once."""
    from unmask.run import Place, within

    with ExitStack() as stack:
        opened = {}

        def at(on, state=None):
            opened.setdefault(on, Place(on, 2, stack=stack))
            return within(replace(opened[on], state=state))

        yield at


@pytest.fixture
def sentences(request):
    """Sentences that a user reads, compared with those pinned in tests/golden/sentences.json."""
    from tests.sentences import Sentences

    test = f"{request.node.path.relative_to(request.config.rootpath)}::{request.node.name}"
    replaced = {}
    if "tmp_path" in request.fixturenames:
        replaced[str(request.getfixturevalue("tmp_path"))] = "<folder>"
    sentences = Sentences(test, replaced, request.config.getoption("--pin-sentences"))
    yield sentences
    # A test that failed on its way did not show all: its own failure says why.
    if not getattr(request.node, "has_failed", False):
        sentences.check_all()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call" and report.failed:
        item.has_failed = True
    return report
