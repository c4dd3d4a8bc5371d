"""A TCP proxy that cuts and stalls connections, and a WebSocket gateway before a plain MQTT port."""

import base64
import hashlib
import socket
import struct
import threading

CHUNK = 65536


class Proxy:
    """Passes bytes on to 127.0.0.1:`target`; cut() resets all connections, stall() passes nothing on."""

    def __init__(self, target):
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.flowing = threading.Event()
        self.flowing.set()
        self.pairs = []
        self.accepted = 0
        self.lock = threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return  # closed
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            with self.lock:
                self.accepted += 1
                self.pairs.append((client, server))
            self.serve(client, server)

    def serve(self, client, server):
        for source, sink in ((client, server), (server, client)):
            threading.Thread(target=self.pump, args=(source, sink), daemon=True).start()

    def pump(self, source, sink):
        try:
            while data := source.recv(CHUNK):
                self.flowing.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # cut

    def cut(self):
        """Both sides get a reset, as after a dead middlebox."""
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            for s in pair:
                try:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    s.shutdown(socket.SHUT_RD)
                except OSError:
                    pass  # its peer was faster
                s.close()

    def stall(self):
        self.flowing.clear()

    def resume(self):
        self.flowing.set()

    def close(self):
        self.listener.close()
        self.flowing.set()
        self.cut()


class RefusingBroker(Proxy):
    """A broker that answers SUBSCRIBE with `refusal` as the last reason code, as one whose rules forbid that filter."""

    NOT_AUTHORIZED = 0x87

    def __init__(self, target):
        self.refusal = self.NOT_AUTHORIZED
        self.refused = 0
        super().__init__(target)

    def serve(self, client, server):
        threading.Thread(target=self.pump, args=(client, server), daemon=True).start()
        threading.Thread(target=self.answers, args=(server, client), daemon=True).start()

    def answers(self, server, client):
        stream = server.makefile("rb")
        try:
            while packet := self.packet(stream):
                if packet[0] >> 4 == 9 and self.refusal:
                    packet = packet[:-1] + bytes([self.refusal])
                    self.refused += 1
                client.sendall(packet)
            client.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # cut

    @staticmethod
    def packet(stream):
        head = stream.read(1)
        if not head:
            return b""
        size, shift = 0, 0
        while True:
            head += stream.read(1)
            size |= (head[-1] & 127) << shift
            shift += 7
            if not head[-1] & 128:
                return head + stream.read(size)


class WebSocketGateway(Proxy):
    """Speaks RFC 6455 with the subprotocol `mqtt` to clients. Strict: a client frame that is not masked ends it."""

    GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

    def __init__(self, target, path="/mqtt"):
        self.path = path
        self.pings_answered = 0
        self.fault = ""
        super().__init__(target)

    def serve(self, client, server):
        threading.Thread(target=self.session, args=(client, server), daemon=True).start()

    def session(self, client, server):
        stream = client.makefile("rb")
        try:
            self.handshake(client, stream)
            threading.Thread(target=self.wrap, args=(client, server), daemon=True).start()
            client.sendall(self.frame(9, b"are you there"))
            self.unwrap(stream, client, server)
        except (OSError, ValueError) as e:
            self.fault = self.fault or str(e)
        finally:
            client.close()
            server.close()

    def handshake(self, client, stream):
        request = stream.readline().decode().split()
        headers = {}
        while line := stream.readline().strip():
            name, _, value = line.decode().partition(":")
            headers[name.strip().lower()] = value.strip()
        if request[:2] != ["GET", self.path] or headers.get("sec-websocket-version") != "13":
            raise ValueError(f"bad handshake: {request} {headers}")
        if "mqtt" not in headers.get("sec-websocket-protocol", "") or headers["upgrade"].lower() != "websocket":
            raise ValueError(f"no mqtt subprotocol: {headers}")
        accept = base64.b64encode(hashlib.sha1(headers["sec-websocket-key"].encode() + self.GUID).digest())
        client.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                       b"Sec-WebSocket-Protocol: mqtt\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")

    @staticmethod
    def frame(opcode, data, final=True):
        head = bytes([(0x80 if final else 0) | opcode])
        if len(data) < 126:
            return head + bytes([len(data)]) + data
        if len(data) < 65536:
            return head + b"\x7e" + struct.pack(">H", len(data)) + data
        return head + b"\x7f" + struct.pack(">Q", len(data)) + data

    def wrap(self, client, server):
        """Each chunk leaves as two fragments, so that the client must join frames."""
        try:
            while data := server.recv(CHUNK):
                self.flowing.wait()
                half = len(data) // 2
                client.sendall(self.frame(2, data[:half], final=False) + self.frame(0, data[half:]))
            client.sendall(self.frame(8, struct.pack(">H", 1000)))
        except OSError:
            pass  # cut

    def unwrap(self, stream, client, server):
        while True:
            head = stream.read(2)
            if len(head) < 2:
                return
            opcode, size = head[0] & 15, head[1] & 127
            if not head[1] & 0x80:
                raise ValueError("the client's frame is not masked")
            if size == 126:
                size = struct.unpack(">H", stream.read(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", stream.read(8))[0]
            mask, data = stream.read(4), stream.read(size)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
            if opcode == 8:
                client.sendall(self.frame(8, data))
                return
            if opcode == 10:
                self.pings_answered += 1
            elif opcode in (0, 2):
                server.sendall(data)
            else:
                raise ValueError(f"unexpected opcode {opcode}")
