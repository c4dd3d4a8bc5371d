"""DynamoDB emulators for the tests: dynoxide where scripts/emulators.sh could build it, else moto's server.

As a program it runs a command with an emulator and the control port of the fault proxies beside it:
    emulators.py [--emulator best|dynoxide|moto] COMMAND...
    GB_TEST_DYNAMODB_ENDPOINT   http://127.0.0.1:<port> of the emulator itself
    GB_TEST_DYNAMODB_EMULATOR   dynoxide or moto: a test that needs dynoxide exits 77 (skipped) on moto
    GB_TEST_DYNAMODB_CONTROL    port of fault_proxy.py, see there
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import boto3
import botocore.config

import rig
from fault_proxy import FaultProxy

VERSION = "3.2.0"
TOOLS = pathlib.Path(os.environ.get("GB_TOOLS", rig.ROOT / ".tools"))
DYNOXIDE = TOOLS / f"dynoxide-{VERSION}" / "bin" / "dynoxide"
KINDS = ("dynoxide", "moto")


def missing(kind):
    """Why this emulator can't be had; empty if it can."""
    if kind == "dynoxide" and not DYNOXIDE.exists():
        return "dynoxide is missing: scripts/emulators.sh builds it where Rust is new enough"
    return ""


def best():
    return "moto" if missing("dynoxide") else "dynoxide"


class DynamoDb:
    """One emulator with empty memory."""

    def __init__(self, folder, kind=""):
        self.kind = kind or best()
        reason = missing(self.kind)
        if reason:
            raise FileNotFoundError(reason)
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = rig.free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.process = None
        self.start()

    def arguments(self):
        if self.kind == "dynoxide":
            return [str(DYNOXIDE), "serve", "--host", "127.0.0.1", "--port", str(self.port)]
        return [str(pathlib.Path(sys.executable).parent / "moto_server"), "-H", "127.0.0.1", "-p", str(self.port)]

    def start(self):
        self.process = rig.Process(self.kind, self.arguments(), self.folder / f"{self.kind}.log")
        rig.wait_until(lambda: rig.is_listening(self.port) or self.process.child.poll() is not None, 60,
                       f"{self.kind} listens")
        assert self.process.child.poll() is None, self.process.text()[-2000:]

    def connect(self, endpoint=None):
        """A client that never tries twice, so that a test sees each answer."""
        config = botocore.config.Config(retries={"total_max_attempts": 1}, max_pool_connections=20,
                                        connect_timeout=10, read_timeout=30)
        return boto3.client("dynamodb", endpoint_url=endpoint or self.endpoint, config=config,
                            region_name=rig.CREDENTIALS["AWS_REGION"],
                            aws_access_key_id=rig.CREDENTIALS["AWS_ACCESS_KEY_ID"],
                            aws_secret_access_key=rig.CREDENTIALS["AWS_SECRET_ACCESS_KEY"])

    def env(self, endpoint=None):
        """What a bridge needs to find it, or the proxy at `endpoint`."""
        return {**rig.CREDENTIALS, "AWS_ENDPOINT_URL_DYNAMODB": endpoint or self.endpoint}

    def cpu_seconds(self):
        """User and system time of the emulator so far, for the benchmark."""
        fields = pathlib.Path(f"/proc/{self.process.child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def pause(self):
        self.process.child.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.child.send_signal(signal.SIGCONT)

    def close(self):
        if self.process.child.poll() is None:
            self.resume()
        self.process.close()


def run(kind, command):
    """The command's exit status; everything that was started for it has ended."""
    with tempfile.TemporaryDirectory(prefix="gobridge-dynamodb-") as folder:
        database = DynamoDb(folder, "" if kind == "best" else kind)
        try:
            proxy = FaultProxy(database.port)
            try:
                env = {**os.environ, "GB_TEST_DYNAMODB_ENDPOINT": database.endpoint,
                       "GB_TEST_DYNAMODB_EMULATOR": database.kind, "GB_TEST_DYNAMODB_CONTROL": str(proxy.control_port)}
                return subprocess.run(command, env=env, check=False).returncode
            finally:
                proxy.close()
        finally:
            database.close()


def main():
    parser = argparse.ArgumentParser(description="Runs a command with a DynamoDB emulator beside it.")
    parser.add_argument("--emulator", choices=("best", *KINDS), default="best")
    parser.add_argument("--missing", choices=KINDS, help="print why this one can't be had, nothing if it can")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.missing:
        print(missing(options.missing))
        return 0
    if not options.command:
        parser.error("no command")
    reason = missing(options.emulator)
    if reason:
        parser.error(reason)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the emulator is ended as well
    return run(options.emulator, options.command)


if __name__ == "__main__":
    sys.exit(main())
