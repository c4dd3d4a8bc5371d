"""HTTP/1.1 on asyncio streams: as much of it as a proxy between an AWS client and an emulator meets."""

import asyncio
import zlib

BODY_BYTES_MAX = 32 << 20
HEAD_BYTES_MAX = 1 << 16


class Gone(Exception):
    """One side has closed its connection."""


class Message:
    """One HTTP request or answer."""

    def __init__(self, first, headers, body):
        self.first, self.headers, self.body = first, headers, body

    def bytes(self):
        lines = [self.first, *(f"{name}: {value}" for name, value in self.headers.items()), "", ""]
        return "\r\n".join(lines).encode("latin-1") + self.body


async def read_head(reader):
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError) as e:
        raise Gone(str(e)) from e
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return first, headers


async def read_body(reader, headers, until_end):
    try:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return await read_chunks(reader)
        if "content-length" in headers:
            return await reader.readexactly(min(int(headers["content-length"]), BODY_BYTES_MAX))
        return await reader.read(BODY_BYTES_MAX) if until_end else b""
    except (asyncio.IncompleteReadError, OSError) as e:
        raise Gone(str(e)) from e


async def read_chunks(reader):
    body = b""
    while size := int((await reader.readline()).split(b";")[0] or b"0", 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body


class Upstream:
    """The emulator's side of one client connection; opened when needed, kept while the emulator keeps it."""

    def __init__(self, port):
        self.port = port
        self.reader = self.writer = None

    async def exchange(self, message):
        if self.reader is None or self.reader.at_eof() or self.writer.is_closing():
            self.close()
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=HEAD_BYTES_MAX)
        try:
            self.writer.write(message.bytes())
            await self.writer.drain()
            first, headers = await read_head(self.reader)
            body = await read_body(self.reader, headers, True)
        except (Gone, OSError):
            self.close()
            raise
        if headers.get("connection", "").lower() == "close" or first.startswith("HTTP/1.0"):
            self.close()
        return int(first.split()[1]), headers, body

    def close(self):
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


def answer_of(status, headers, body):
    """An answer for the client: lengths set, hop headers gone, the checksum that AWS always sends."""
    hop = ("connection", "keep-alive", "transfer-encoding", "content-length")
    kept = {n: v for n, v in headers.items() if n not in hop}
    kept.setdefault("x-amz-crc32", str(zlib.crc32(body)))
    kept["content-length"] = str(len(body))
    return Message(f"HTTP/1.1 {status} {'OK' if status < 400 else 'Error'}", kept, body)
