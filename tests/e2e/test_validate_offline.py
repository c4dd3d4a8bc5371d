"""`-validate` touches neither network nor stores (spec 08 §2, acceptance check 1)."""

import re
import shutil
import socket
import subprocess

import pytest

import rig


def test_validate_makes_no_socket_and_no_file(folder):
    strace = shutil.which("strace")
    trace = folder / "trace"
    with socket.socket() as listener:  # whoever calls broker or SQS would be noticed here
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        port = listener.getsockname()[1]
        bridge = rig.Bridge(folder, rig.document(folder, port, f"http://127.0.0.1:{port}/1/q",
                                                 f"http://127.0.0.1:{port}"))
        command = [str(rig.BRIDGE), "-config", str(bridge.config), "-validate"]
        if strace:
            command = [strace, "-f", "-e", "trace=%network", "-o", str(trace), *command]
        before = sorted(folder.rglob("*"))
        result = subprocess.run(command, env=bridge.env, capture_output=True, text=True, timeout=30)
        assert (result.returncode, result.stdout) == (0, ""), result.stderr
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert [p for p in sorted(folder.rglob("*")) if p != trace] == before
    if strace:
        assert "exited with 0" in trace.read_text(), "it was traced"
        assert not re.search(r"\b(socket|connect|bind|send\w*|recv\w*)\(", trace.read_text())
