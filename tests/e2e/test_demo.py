"""`make demo` and `make demo-cluster` end well, quickly, and leaves nothing behind."""

import os
import pathlib
import subprocess
import time

import pytest


def children_with(mark):
    """Processes whose environment has the mark: all descendants, also those in sessions of their own."""
    found = []
    for environ in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in environ.read_bytes():
                found.append(environ.parent.name)
        except OSError:
            continue  # ended meanwhile
    return found


@pytest.mark.parametrize("script", ["demo.sh", "demo_cluster.sh"])
def test_demo_ends_well_and_leaves_no_process(script, script_folder):
    mark = f"GB_DEMO_MARK={os.getpid()}-{time.monotonic_ns()}"
    name, _, value = mark.partition("=")
    start = time.monotonic()
    result = subprocess.run([str(script_folder / script)], env={**os.environ, name: value}, capture_output=True, text=True,
                            timeout=110)
    print(result.stdout)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Nothing is missing." in result.stdout
    assert time.monotonic() - start < 80
    assert not children_with(mark)
