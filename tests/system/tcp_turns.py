# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes that use a connection in turns (tcp_turns.sh): streams that a seed makes go both
ways, while the connection is forked, used by parent and child at once, or taken along to
another program.

    tcp_turns.py serve ADDRESS PORT             the peer: says of each connection how it was
    tcp_turns.py fork|exec|daemon ADDRESS PORT SEED
                                                a connection
"""
import ctypes
import os
import random
import socket
import struct
import sys
import threading

LEN = 400000


def streams(seed):
    made = random.Random(seed)
    return made.randbytes(LEN), made.randbytes(LEN)


# -- the peer ----------------------------------------------------------------------------

def receive(s, expected):
    text = bytearray()
    while more := s.recv(65536):
        text += more
    if text == expected:
        return "good"
    same = next((i for i, (x, y) in enumerate(zip(text, expected)) if x != y),
                min(len(text), len(expected)))
    return f"{len(text)} bytes, the first {same} as sent"


def converse(s):
    with s:
        seed, = struct.unpack("!Q", s.recv(8, socket.MSG_WAITALL))
        theirs, ours = streams(seed)

        def send():
            s.sendall(ours)
            s.shutdown(socket.SHUT_WR)
        sender = threading.Thread(target=send)
        sender.start()
        try:
            said = receive(s, theirs)
        except OSError as e:
            said = repr(e)
        sender.join()
    print(seed, said, flush=True)


def serve(address, port):
    server = socket.create_server((address, int(port)), backlog=64)
    print("ready", flush=True)
    while True:
        threading.Thread(target=converse, args=(server.accept()[0],), daemon=True).start()


# -- the connection ------------------------------------------------------------------------

class Streams:
    def __init__(self, s, seed, sent, got, draw):
        self.s, self.seed, self.sent, self.got = s, seed, sent, got
        self.draw = random.Random(draw)
        self.ours, self.theirs = streams(seed)

    def is_over(self):
        return self.sent == self.got == LEN

    def send(self):
        end = min(self.sent + self.draw.choice((1, 100, 3000, 30000)), LEN)
        self.sent += self.s.send(self.ours[self.sent:end]) if end > self.sent else 0

    def receive(self):
        room = min(self.draw.choice((1, 100, 3000, 30000)), LEN - self.got)
        text = self.s.recv(room) if room else b""
        if room and text != self.theirs[self.got:self.got + len(text)] or room and not text:
            raise ValueError(f"other bytes than were sent, behind {self.got}: {text[:20]!r}")
        self.got += len(text)

    def turn(self, ways):
        for _ in range(self.draw.randrange(1, 12)):
            self.draw.choice(ways)()


def by_child(c, ways):
    """Starts a child that goes on; returns what tells how far it has come."""
    ends = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            c.turn(ways)
            os.write(ends[1], struct.pack("!QQ", c.sent, c.got))
            status = 0
        finally:
            os._exit(status)
    os.close(ends[1])

    def result():
        with open(ends[0], "rb") as file:
            told = file.read()
        if os.waitpid(pid, 0)[1] or len(told) != 16:
            raise ChildProcessError("a child has failed")
        return struct.unpack("!QQ", told)
    return result


def fork_once(c):
    if c.draw.randrange(2):
        c.sent, c.got = by_child(c, (c.send, c.receive))()
        # or its numbers would be drawn again
        c.draw.seed(c.draw.random())
        return
    # both at once, each in one direction
    result = by_child(c, (c.receive,))
    c.turn((c.send,))
    c.got = result()[1]


def exec_once(c):
    os.set_inheritable(c.s.fileno(), True)
    # the first program's log is looked at
    if log := os.environ.get("VMA_LOG_FILE"):
        os.environ["VMA_LOG_FILE"] = log.removesuffix(".later") + ".later"
    os.execv(sys.executable, [sys.executable, sys.argv[0], "resume", str(c.s.fileno()),
                              str(c.seed), str(c.sent), str(c.got),
                              str(c.draw.getrandbits(60))])


def go_on(c, change, chance, first=None):
    """Changes now and then; for certain behind turn FIRST, which is long before the end."""
    turns = 0
    while not c.is_over():
        c.turn((c.send, c.receive))
        turns += 1
        if turns == first or c.draw.random() < chance:
            change(c)
    c.s.shutdown(socket.SHUT_WR)
    if c.s.recv(1):
        raise ValueError("more than was sent")
    print("good", flush=True)


def begin(address, port, seed):
    s = socket.create_connection((address, int(port)), timeout=20)
    s.settimeout(None)
    s.sendall(struct.pack("!Q", int(seed)))
    return Streams(s, int(seed), 0, 0, int(seed) + 1)


def fork(address, port, seed):
    c = begin(address, port, seed)
    go_on(c, fork_once, 0.2, c.draw.randrange(1, 5))


def exec_(address, port, seed):
    c = begin(address, port, seed)
    go_on(c, exec_once, 0.05, c.draw.randrange(1, 5))


def daemon(address, port, seed):
    """In the background, from somewhere in the streams on."""
    c = begin(address, port, seed)
    c.turn((c.send, c.receive))
    if ctypes.CDLL(None).daemon(1, 1) != 0:
        raise OSError("daemon")
    go_on(c, fork_once, 0.2)


def resume(fd, *numbers):
    seed, sent, got, draw = map(int, numbers)
    go_on(Streams(socket.socket(fileno=int(fd)), seed, sent, got, draw), exec_once, 0.05)


if __name__ == "__main__":
    {"serve": serve, "fork": fork, "exec": exec_, "daemon": daemon,
     "resume": resume}[sys.argv[1]](*sys.argv[2:])
