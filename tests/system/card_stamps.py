# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The unmodified programs of card_stamps.sh.
#
#   card_stamps.py udp|tcp ADDRESS PORT FLAG...   receives for as long as something comes;
#                                                 FLAGs of SO_TIMESTAMPING without
#                                                 SOF_TIMESTAMPING_, or card for the two
#                                                 that a card's stamps need, soft for the
#                                                 two of software
#   card_stamps.py send udp|tcp ADDRESS PORT SECONDS   a hundred messages in each second
#   card_stamps.py sent poll|epoll|spin ADDRESS PORT COUNT LEN RECORDS FLAG...
#                                                 sends so many datagrams, and reads so
#                                                 many records of each, by poll or epoll or
#                                                 by looking again and again
#   card_stamps.py left ADDRESS PORT COUNT        closes each of so many sockets before the
#                                                 card can say when its datagram left
#
# What the first prints at the end, a word and a number in each line:
#   messages, soft and card  how many came, and had time stamps of that kind
#   disorder          how many of the card's stamps were before the one before
#   ahead_us          by how much the card's stamps are ahead of the software's, the most
#                     among the last 50: a program that is late has later ones of software
#   drift_us          how much more that is than the most among the first 50
#   card_ms           from the first of the card's stamps to the last
#   soft_ms           the same of software
#   first_card_ms     the first one
#   info              how many had an SCM_TIMESTAMPING_PKTINFO that is right
# and what the third prints besides some of these:
#   records           how many came
#   numbered          how many of them had the number of their datagram
#   astray            how many of the card's stamps were more than 4 ms off
#   layout            the control messages, with what does not change
import select
import socket
import struct
import sys
import time

SO_TIMESTAMPING = 37
SCM_TIMESTAMPING_PKTINFO = 58
FLAGS = {
    "RX_HARDWARE": 1 << 2, "RX_SOFTWARE": 1 << 3, "SOFTWARE": 1 << 4,
    "RAW_HARDWARE": 1 << 6, "OPT_PKTINFO": 1 << 13,
    "card": 1 << 2 | 1 << 6, "soft": 1 << 3 | 1 << 4,
    "TX_HARDWARE": 1 << 0, "TX_SOFTWARE": 1 << 1, "OPT_ID": 1 << 7,
    "TX_SCHED": 1 << 8, "OPT_TSONLY": 1 << 11, "OPT_TX_SWHW": 1 << 14,
}
IP_RECVERR = 11
MSG_ERRQUEUE = 0x2000
SKEW_NS = 4 * 10**6
LEN = 20
HEADERS = 14 + 20 + 8


class Seen:
    def __init__(self):
        self.soft, self.card, self.ahead = [], [], []
        self.messages = self.info = 0

    def note(self, ancillary):
        self.messages += 1
        for level, kind, data in ancillary:
            if level != socket.SOL_SOCKET:
                continue
            if kind == SCM_TIMESTAMPING_PKTINFO:
                index, length = struct.unpack("=II8x", data)
                self.info += (index == socket.if_nametoindex("v0") and
                              length == HEADERS + LEN)
            if kind != SO_TIMESTAMPING:
                continue
            s, ns, *between, card_s, card_ns = struct.unpack("=6q", data)
            if any(between):
                print("a stamp in the second place", between)
            soft, card = s * 10**9 + ns, card_s * 10**9 + card_ns
            if soft:
                self.soft.append(soft)
            if card:
                self.card.append(card)
            if soft and card:
                self.ahead.append(card - soft)

    def tell(self):
        print("messages", self.messages)
        print("soft", len(self.soft))
        print("card", len(self.card))
        print("info", self.info)
        print("disorder", sum(b < a for a, b in zip(self.card, self.card[1:])))
        if self.card:
            print("first_card_ms", self.card[0] // 10**6)
            print("card_ms", (self.card[-1] - self.card[0]) // 10**6)
        if self.soft:
            print("soft_ms", (self.soft[-1] - self.soft[0]) // 10**6)
        if self.ahead:
            first, last = (round(max(some) / 1000)
                           for some in (self.ahead[:50], self.ahead[-50:]))
            print("ahead_us", last)
            print("drift_us", last - first)


def receive(kind, address, port, *names):
    flags = sum(FLAGS[name] for name in names)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == "udp" else
                      socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, int(port)))
    if kind == "tcp":
        s.listen()
        # the first accept makes it accelerated
        s.setblocking(False)
        try:
            s.accept()
        except BlockingIOError:
            s.setblocking(True)
        print("ready", flush=True)
        s, _ = s.accept()
        s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, flags)
    else:
        s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, flags)
        print("ready", flush=True)
    seen = Seen()
    s.settimeout(20)
    try:
        while True:
            data, ancillary, _, _ = s.recvmsg(LEN, 1024)
            if not data and kind == "tcp":
                break
            seen.note(ancillary)
            s.settimeout(2)
    except TimeoutError:
        pass
    seen.tell()


def send(kind, address, port, seconds):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == "udp" else
                      socket.SOCK_STREAM)
    s.connect((address, int(port)))
    if kind == "tcp":
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        s.send(b"." * LEN)
        time.sleep(0.01)


def connected(address, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect((address, int(port)))
    # by then the neighbour is known
    for _ in range(30):
        s.send(b".")
        time.sleep(0.01)
    return s


# What waits for a record, by the name of how it does that.
def waiter(how, s):
    if how == "poll":
        poll = select.poll()
        poll.register(s, 0)
        return lambda: bool(poll.poll(2000))
    if how == "epoll":
        epoll = select.epoll()
        epoll.register(s, 0)
        return lambda: bool(epoll.poll(2))
    return lambda: True


def record_of(s, how):
    end = time.monotonic() + 2
    while time.monotonic() < end:
        try:
            return s.recvmsg(65536, 1024, MSG_ERRQUEUE | socket.MSG_DONTWAIT)
        except BlockingIOError:
            if how != "spin":
                print("ready, and there is nothing")
                break
    return None


def sent(how, address, port, count, length, each, *names):
    s = connected(address, port)
    s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, sum(FLAGS[name] for name in names))
    wait = waiter(how, s)
    soft, card, layouts = [], [], set()
    records = numbered = astray = 0
    for i in range(int(count)):
        before = time.time_ns()
        s.send(b"x" * int(length))
        for _ in range(int(each)):
            if not wait():
                break
            record = record_of(s, how)
            if not record:
                break
            data, ancillary, flags, _ = record
            after = time.time_ns()
            records += 1
            layout = ["len %d flags %#x" % (len(data), flags)]
            for level, kind, body in ancillary:
                layout.append("%d/%d/%d" % (level, kind, len(body)))
                if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPING):
                    times = struct.unpack("=6q", body)
                    if any(times[:2]):
                        soft.append(times[0] * 10**9 + times[1])
                    if any(times[4:]):
                        card.append(times[4] * 10**9 + times[5])
                        astray += not before - SKEW_NS < card[-1] < after + SKEW_NS
                if (level, kind) == (socket.IPPROTO_IP, IP_RECVERR):
                    *error, number = struct.unpack("=I4BII", body[:16])
                    layout.append(str(error) + body[16:].hex())
                    numbered += number == i
            layouts.add(" ".join(layout))
    # nothing is left
    try:
        print("one more", s.recvmsg(65536, 1024, MSG_ERRQUEUE | socket.MSG_DONTWAIT))
    except BlockingIOError:
        pass
    print("records", records)
    print("numbered", numbered)
    print("soft", len(soft))
    print("card", len(card))
    print("astray", astray)
    print("disorder", sum(b < a for a, b in zip(card, card[1:])))
    for layout in layouts:
        print("layout", layout)


def left(address, port, count):
    for _ in range(int(count)):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.connect((address, int(port)))
        s.send(b".")
        s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING,
                     FLAGS["TX_HARDWARE"] | FLAGS["RAW_HARDWARE"])
        for _ in range(3):
            s.send(b".")
        s.close()


commands = {"send": send, "sent": sent, "left": left}
command = commands.get(sys.argv[1])
command(*sys.argv[2:]) if command else receive(*sys.argv[1:])
