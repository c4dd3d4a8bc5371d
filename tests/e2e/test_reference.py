"""scripts/reference notices a key without a text, a text without a key, and files that are not up to date."""
import os
import pathlib
import shutil
import subprocess

import pytest

import rig

TABLES = pathlib.Path(os.environ.get("GB_TABLES", rig.ROOT / "build/bin/schema_tables"))


@pytest.fixture
def check(folder):
    """Runs the check on a copy of the generator and of docs/, after one change of the copy."""
    shutil.copytree(rig.ROOT / "scripts/reference", folder / "scripts/reference")
    shutil.copytree(rig.ROOT / "examples", folder / "examples")
    for name in ("configuration.md", "gobridge.schema.json"):
        (folder / "docs").mkdir(exist_ok=True)
        shutil.copy(rig.ROOT / "docs" / name, folder / "docs")

    def run(name=None, old="", new=""):
        if name:
            path = folder / name
            text = path.read_text(encoding="utf-8")
            assert old in text
            path.write_text(text.replace(old, new, 1), encoding="utf-8")
        result = subprocess.run([folder / "scripts/reference/generate.py", "--check", TABLES], capture_output=True,
                                text=True, timeout=60)
        return result.returncode, result.stdout + result.stderr
    return run


KEYS = "scripts/reference/keys.txt"


def test_the_files_are_up_to_date(check):
    assert check() == (0, "")


@pytest.mark.parametrize("name, old, new, said", [
    (KEYS, "debounce:", "debounced:", "[config_watch] lacks debounce"),
    (KEYS, "debounce:", "debounced:", "[config_watch] describes debounced, which no table has"),
    (KEYS, "[config_watch]", "[watch]", "lacks [config_watch]"),
    (KEYS, "[config_watch]", "[watch]", "describes [watch], which no table has"),
    (KEYS, "`V32`", "`V99`", "names the rule V99"),
    (KEYS, "The process as a whole.", "The process.", "docs/configuration.md is not up to date"),
    (KEYS, "The process as a whole.", "The process.", "docs/gobridge.schema.json is not up to date"),
    ("docs/gobridge.schema.json", "exclusive", "inclusive", "docs/gobridge.schema.json is not up to date"),
    ("examples/fifo.yaml", "message_group_id: orders", "fifo: true", "docs/configuration.md is not up to date"),
])
def test_a_fault_is_named(check, name, old, new, said):
    status, output = check(name, old, new)
    assert status == 1
    assert said in output
