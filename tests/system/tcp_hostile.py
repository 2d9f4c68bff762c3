# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The attackers of tcp_hostile.sh, who speak TCP by frames of their own making: to port 7000
# of 10.78.0.1, from addresses of 10.79.0.0/16 that no kernel has, which are behind us.
#
#   near CNT                SYNs from addresses of the network that nobody has
#   cookies CNT             SYNs from many addresses that answer nothing, and in the midst
#                           of them 50 whole conversations
#   late CNT                20 who have their answers before such SYNs, and go on behind them
#   flood CNT               connections that are opened, and no more
#   closers CNT             connections whose service ends, and that do not answer the end
#   deaf CNT WINDOW         connections that are owed 10 MB each, and acknowledge nothing
#                           more, or take it by a window of 0 for ever
#   shrinker                takes 200,000 bytes by windows that shrink again
#   crumbs CNT              a stream of CNT bytes, byte by byte and not in order
#   inject ADDRESS PORT     resets, SYNs, data and acknowledgments with numbers that are not
#                           right, in the name of this end of a connection
#   lies SEED               segments that are malformed
#
# They print what they have seen. And programs:
#
#   keep ADDRESS            takes connections to its port 7000, and never ends one
#   close ADDRESS CNT       connects so often, and closes each time
import collections
import ctypes
import random
import select
import socket
import struct
import sys
import time

from checksums import checksum

SERVER, PORT, IFNAME = "10.78.0.1", 7000, "v0"
FIN, SYN, RST, PSH, ACK, URG = 1, 2, 4, 8, 16, 32
MASK = 0xffffffff

# -- frames ------------------------------------------------------------------


def packet(src, data):
    """An IP packet to the server."""
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(data), 7, 0, 64, 6, 0,
                       socket.inet_aton(src), socket.inet_aton(SERVER))
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + data


def segment(src, sport, seq, ack, flags, window=65535, options=b"", data=b"",
            dport=PORT, offset=None, sum_=None, urgent=0):
    offset = 5 + len(options) // 4 if offset is None else offset
    head = struct.pack("!HHIIBBHHH", sport, dport, seq & MASK, ack & MASK,
                       offset << 4, flags, window, 0, urgent) + options + data
    if sum_ is None:
        pseudo = socket.inet_aton(src) + socket.inet_aton(SERVER) + struct.pack(
            "!BBH", 0, 6, len(head))
        sum_ = checksum(pseudo + head)
    return packet(src, head[:16] + struct.pack("!H", sum_) + head[18:])


class Wire:
    """Sends to the server, and receives what it sends to a network of the attackers'."""

    def __init__(self, net=0x0a4f0000, mask=0xffff0000):
        with open("/sys/class/net/%s/address" % IFNAME) as f:
            own = bytes.fromhex(f.read().strip().replace(":", ""))
        self.head = server_mac() + own + b"\x08\x00"
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                  socket.htons(0x0800))
        self.filter(net, mask)
        self.sock.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.sock.bind((IFNAME, 0x0800))
        self.sent = self.received = 0

    def filter(self, net, mask):
        code = [(0x28, 0, 0, 12), (0x15, 0, 4, 0x0800), (0x20, 0, 0, 30),
                (0x54, 0, 0, mask), (0x15, 0, 1, net), (0x06, 0, 0, 0x40000),
                (0x06, 0, 0, 0)]
        raw = b"".join(struct.pack("HBBI", *line) for line in code)
        self.code = ctypes.create_string_buffer(raw, len(raw))
        self.sock.setsockopt(socket.SOL_SOCKET, 26, struct.pack(
            "HL", len(code), ctypes.addressof(self.code)))  # SO_ATTACH_FILTER

    def send(self, pkt):
        self.sock.send(self.head + pkt)
        self.sent += 1

    def receive(self, timeout):
        """(our address, our port, seq, ack, flags, window, data) or None"""
        if not select.select([self.sock], [], [], timeout)[0]:
            return None
        ip = self.sock.recv(65536)[14:]
        self.received += 1
        ip = ip[:struct.unpack_from("!H", ip, 2)[0]]
        tcp = ip[(ip[0] & 15) * 4:]
        _, port, seq, ack, offset, flags, window = struct.unpack_from("!HHIIBBH", tcp)
        return (socket.inet_ntoa(ip[16:20]), port, seq, ack, flags, window,
                tcp[(offset >> 4) * 4:])


def server_mac():
    with open("/proc/net/arp") as f:
        for line in f:
            if line.startswith(SERVER + " "):
                return bytes.fromhex(line.split()[3].replace(":", ""))
    sys.exit("the server has no address")


def attacker(number):
    return "10.79.%d.%d" % (1 + number // 250 % 250, 1 + number % 250)


class Peer:
    """One end of a connection."""

    def __init__(self, wire, number, window=65535):
        self.wire, self.window = wire, window
        self.addr, self.port = attacker(number), 1024 + number // 62500
        self.seq = 1000 * number
        self.ack = 0
        self.is_open = self.has_end = self.is_reset = False
        self.got = 0

    def syn(self, options=b"\x02\x04\x05\xb4"):
        self.wire.send(segment(self.addr, self.port, self.seq, 0, SYN, self.window,
                               options))

    def send(self, flags=ACK, data=b"", at=0, window=None):
        self.wire.send(segment(self.addr, self.port, self.seq + at, self.ack, flags,
                               self.window if window is None else window, data=data))

    def take(self, seq, ack, flags, data):
        if flags & RST:
            self.is_reset = True
        elif flags & SYN:
            if not self.is_open:
                self.seq += 1
                self.ack = seq + 1 & MASK
            self.is_open = True
        elif seq == self.ack:
            self.ack = self.ack + len(data) + bool(flags & FIN) & MASK
            self.got += len(data)
            self.has_end |= bool(flags & FIN)


def by_name(peers):
    return {(p.addr, p.port): p for p in peers}


def open_all(wire, cnt, each, first=0, window=65535, at_once=64):
    """Opens connections; each(peer) when one is open. Returns the peers."""
    peers = [Peer(wire, first + i, window) for i in range(cnt)]
    names = by_name(peers)
    waiting = collections.deque(peers)
    opening = set()
    until = time.monotonic() + 10
    while (waiting or opening) and time.monotonic() < until:
        while waiting and len(opening) < at_once:
            peer = waiting.popleft()
            peer.syn()
            opening.add(peer)
        news = wire.receive(0.5)
        if not news:
            for peer in opening:
                peer.syn()
            continue
        peer = names.get(news[:2])
        if not peer:
            continue
        was_open = peer.is_open
        peer.take(news[2], news[3], news[4], news[6])
        if peer.is_open and not was_open:
            opening.discard(peer)
            peer.send()
            each(peer)
    return peers


# -- attacks -----------------------------------------------------------------

def pace(number):
    if number % 50 == 49:
        time.sleep(0.001)


def near(cnt):
    wire = Wire()
    rand = random.Random(1)
    for i in range(int(cnt)):
        wire.send(segment("10.78.0.%d" % rand.randrange(10, 250),
                          rand.randrange(1, 65536), rand.randrange(MASK), 0, SYN))
        pace(i)
    print("sent", wire.sent)


def flood_by(wire, rand, cnt):
    for i in range(cnt):
        wire.send(segment(attacker(rand.randrange(62500)), rand.randrange(1, 65536),
                          rand.randrange(MASK), 0, SYN))
        pace(i)


def cookies(cnt):
    wire = Wire(0x0a4ffe00, 0xffffff00)
    rand = random.Random(1)
    right = 0
    for i in range(50):
        flood_by(wire, rand, int(cnt) // 50)
        peer = Peer(wire, 0)
        peer.addr, peer.port = "10.79.254.1", 2000 + i
        right += converse(peer)
    print("right", right)


def late(cnt):
    wire = Wire(0x0a4ffe00, 0xffffff00)
    rand = random.Random(1)
    flood_by(wire, rand, 1000)
    peers = [Peer(wire, i) for i in range(20)]
    for i, peer in enumerate(peers):
        peer.addr = "10.79.254.%d" % (1 + i)
        until = time.monotonic() + 5
        while not peer.is_open and time.monotonic() < until:
            peer.syn()
            news = wire.receive(0.3)
            if news and news[:2] == (peer.addr, peer.port):
                peer.take(news[2], news[3], news[4], news[6])
    flood_by(wire, rand, int(cnt))
    print("right", sum(converse(peer) for peer in peers))


def converse(peer):
    """Asks for 1000 bytes."""
    if not peer.is_open:
        peer.syn()
    asked = False
    until = time.monotonic() + 5
    while not peer.has_end and time.monotonic() < until:
        news = peer.wire.receive(0.3)
        if news and news[:2] == (peer.addr, peer.port):
            peer.take(news[2], news[3], news[4], news[6])
        elif not peer.is_open:
            peer.syn()
        if peer.is_open and not (asked and news):
            peer.send(ACK | PSH, b"give 1 1000\n")
            asked = True
        elif peer.is_open:
            peer.send(at=12)
    peer.seq += 12
    peer.send(FIN | ACK)
    return peer.got == 1000


def flood(cnt):
    wire = Wire()
    peers = open_all(wire, int(cnt), lambda peer: None)
    print("open", sum(p.is_open for p in peers))


def closers(cnt):
    wire = Wire()
    peers = open_all(wire, int(cnt), lambda peer: peer.send(ACK | PSH, b"no 0 0\n"))
    names = by_name(peers)
    until = time.monotonic() + 10
    while time.monotonic() < until and not all(p.has_end for p in peers):
        news = wire.receive(0.5)
        peer = names.get(news[:2]) if news else None
        if peer:
            peer.take(news[2], news[3], news[4], news[6])
        elif not news:
            for peer in peers:
                if not peer.has_end:
                    peer.send(ACK | PSH, b"no 0 0\n")
    # of the kernel's at the other end, which acknowledges and does not end
    for peer in peers:
        peer.seq += 7
        peer.send()
    print("open", sum(p.is_open for p in peers), "ended",
          sum(p.has_end for p in peers))


def deaf(cnt, window):
    wire = Wire()
    peers = open_all(wire, int(cnt),
                     lambda peer: peer.send(ACK | PSH, b"give 1 10000000\n"))
    names = by_name(peers)
    for peer in peers:
        peer.seq += 16
        peer.window = int(window)
    print("open", sum(p.is_open for p in peers), flush=True)
    # with a window of 0 each probe is answered; without one nothing is
    until = time.monotonic() + 3
    while time.monotonic() < until:
        news = wire.receive(0.2)
        peer = names.get(news[:2]) if news else None
        if peer and int(window) == 0:
            peer.take(news[2], news[3], news[4], news[6])
            peer.send()
    for peer in peers:
        peer.send(RST | ACK)


def shrinker():
    wire = Wire()
    peer = open_all(wire, 1, lambda p: p.send(ACK | PSH, b"give 3 200000\n"))[0]
    peer.seq += 14
    rand = random.Random(1)
    until = time.monotonic() + 20
    while not peer.has_end and not peer.is_reset and time.monotonic() < until:
        news = wire.receive(0.3)
        if news:
            peer.take(news[2], news[3], news[4], news[6])
        peer.send(window=rand.choice((0, 1, 100, 1460, 5000, 20000)))
        # what was granted a moment ago is taken back
        if rand.randrange(4) == 0:
            peer.send(window=0)
    peer.send(RST | ACK)
    print("got", peer.got, "end", peer.has_end, "reset", peer.is_reset)


def crumbs(cnt):
    cnt = int(cnt)
    wire = Wire()
    peer = open_all(wire, 1, lambda p: p.send(ACK | PSH, b"count 0 0\n"))[0]
    peer.seq += 10
    for first in (1, 0):
        for at in range(first, cnt, 2):
            peer.send(data=b"x", at=at)
            pace(at)
        # what was given up for want of memory is sent again, as TCP does
        print("half", flush=True)
        if first:
            sys.stdin.readline()
    acked = 0
    until = time.monotonic() + 60
    while time.monotonic() < until and acked < cnt:
        news = wire.receive(0.05)
        if news:
            acked = max(acked, (news[3] - peer.seq + 2**31 & MASK) - 2**31)
            continue
        for at in range(acked, min(acked + 1000, cnt)):
            peer.send(data=b"x", at=at)
    peer.seq += cnt
    peer.send(FIN | ACK)
    text = b""
    until = time.monotonic() + 10
    while not peer.has_end and time.monotonic() < until:
        news = wire.receive(0.5)
        if news:
            before = peer.got
            peer.take(news[2], news[3], news[4], news[6])
            text += news[6][:peer.got - before]
            peer.send(at=1)
    peer.send(RST | ACK, at=1)
    print("taken", text.decode() or "-")


def inject(addr, port):
    """A blind attacker who knows the four-tuple. He is heard by nobody but the server."""
    wire = Wire(0x0a4e0002, MASK)
    rand = random.Random(1)
    port = int(port)
    for i in range(3000):
        seq, ack = rand.randrange(MASK), rand.randrange(MASK)
        flags = (RST, RST | ACK, SYN, SYN | ACK, ACK, ACK | PSH, FIN | ACK)[i % 7]
        stamp = struct.pack("!BBBBII", 1, 1, 8, 10, rand.randrange(MASK), 0)
        wire.send(segment(addr, port, seq, ack, flags, rand.randrange(65536),
                          options=stamp if rand.randrange(4) else b"",
                          data=b"injected" if flags & PSH else b""))
        pace(i)
    print("sent", wire.sent)


def lies(seed):
    wire = Wire()
    rand = random.Random(int(seed))
    src = attacker(7)
    for i in range(2000):
        kind = i % 8
        flags = rand.randrange(64)
        args = dict(window=rand.randrange(65536), urgent=rand.randrange(65536))
        if kind == 0:
            args["offset"] = rand.choice((0, 1, 4, 6, 9, 15))
        elif kind == 1:
            args["sum_"] = rand.randrange(65536)
        elif kind == 2:
            args["options"] = bytes(rand.randrange(256) for _ in range(40))
        elif kind == 3:
            args["options"] = bytes((rand.choice((2, 3, 4, 5, 8, 30)),
                                     rand.randrange(50))) * 20
        elif kind == 4:
            args["data"] = bytes(rand.randrange(1400))
        elif kind == 5:
            args["dport"] = rand.randrange(65536)
        pkt = segment(src, rand.randrange(65536), rand.randrange(MASK),
                      rand.randrange(MASK), flags, **args)
        if kind == 6:
            pkt = packet(src, pkt[20:20 + rand.randrange(20)])
        wire.send(pkt)
        pace(i)
    received = 0
    while wire.receive(0.3):
        received += 1
    print("sent", wire.sent, "answers", "few enough" if received <= wire.sent else
          received)

# -- programs ----------------------------------------------------------------

def keep(addr):
    listener = socket.create_server((addr, PORT), backlog=1000)
    print("ready", flush=True)
    kept = []
    while True:
        kept.append(listener.accept())


def close(addr, cnt):
    for i in range(int(cnt)):
        with socket.create_connection((addr, PORT), 10) as s:
            s.sendall(b"x")
    print("closed", i + 1)


globals()[sys.argv[1]](*sys.argv[2:])
