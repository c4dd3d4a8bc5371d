"""Standard streams and signals that other programs hand over in a bad state (spec 08 §3)."""

import contextlib
import fcntl
import os
import signal
import subprocess
import time

import pytest

import rig


def start(bridge, closed=(), **streams):
    """The bridge without the descriptors of `closed`."""
    def close():
        for fd in closed:
            os.close(fd)
    return subprocess.Popen([str(rig.BRIDGE), "-config", str(bridge.config), "-log-level", "debug"], env=bridge.env,
                            preexec_fn=close, **streams)


def ended(child, seconds):
    """The exit code; the child is gone afterwards in any case."""
    try:
        return child.wait(seconds)
    finally:
        child.kill()
        child.wait()


@pytest.fixture
def bridge(folder):
    doc = rig.document(folder, rig.free_port(), "http://127.0.0.1:2/1/q", "http://127.0.0.1:2")
    made = rig.Bridge(folder, doc)
    made.seed()
    return made


@pytest.mark.parametrize("closed", [(0,), (2,), (0, 1, 2)])
def test_closed_streams(bridge, folder, closed):
    child = start(bridge, closed)
    outbox = folder / "outbox.db"
    with contextlib.ExitStack() as stack:
        stack.callback(child.kill)
        rig.wait_until(lambda: outbox.exists() and len(os.listdir(f"/proc/{child.pid}/fd")) > 12, 10, "it runs")
        for fd in closed:
            assert os.readlink(f"/proc/{child.pid}/fd/{fd}") == "/dev/null"
        child.send_signal(signal.SIGTERM)
        assert ended(child, 15) == 0


def test_stderr_that_nobody_reads(bridge):
    read_end, write_end = os.pipe()
    fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096)
    child = start(bridge, stderr=write_end)
    os.close(write_end)
    with open(read_end, "rb"):
        time.sleep(1)
        for _ in range(50):
            child.send_signal(signal.SIGUSR1)
            time.sleep(0.01)
        child.send_signal(signal.SIGTERM)
        assert ended(child, 15) == 0


def test_sigterm_ends_a_start_that_waits_for_its_document(bridge, folder):
    fifo = folder / "fifo.yaml"
    os.mkfifo(fifo)
    bridge.config = fifo
    child = start(bridge, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    child.send_signal(signal.SIGUSR1)  # says nothing yet, ends nothing either
    time.sleep(0.2)
    assert child.poll() is None
    child.send_signal(signal.SIGTERM)
    assert ended(child, 5) == -signal.SIGTERM
