# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The unmodified programs of card_stamps.sh.
#
#   card_stamps.py udp|tcp ADDRESS PORT FLAG...   receives until the sender has ended;
#                                                 FLAGs of SO_TIMESTAMPING without
#                                                 SOF_TIMESTAMPING_, or card for the two
#                                                 that a card's stamps need, soft for the
#                                                 two of software
#   card_stamps.py send udp|tcp ADDRESS PORT SECONDS   a hundred messages in each second, and of
#                                                 UDP one that says that this was all
#   card_stamps.py sent KIND HOW ADDRESS PORT COUNT LEN RECORDS FLAG...
#                                                 sends so many messages, and reads so many
#                                                 records of each. KIND: udp, tcp, early for
#                                                 a stream that has the FLAGs before it is
#                                                 connected, or accepted for one to ADDRESS,
#                                                 whose listener has them. HOW: by poll or epoll, by
#                                                 looking again and again (spin), or by poll
#                                                 with the stations in a control message (cmsg)
#   card_stamps.py again ADDRESS PORT FLAG...     sends 1000 bytes, and reads two records of
#                                                 that, and those that follow soon
#   card_stamps.py moved back|removed later|at-once ADDRESS PORT COUNT
#                                                 sends as many messages before the
#                                                 connection goes back to the kernel as after
#                                                 it: by an option, or with its card; when all
#                                                 has arrived, or at once
#   card_stamps.py left udp|tcp ADDRESS PORT COUNT   closes each of so many sockets before the
#                                                 card can say when its last message left
#   card_stamps.py drain ADDRESS PORT             takes all connections and what they say
#   card_stamps.py call ADDRESS PORT              takes what a server says
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
# and what those that send print besides some of these:
#   records           how many came
#   numbered          how many of them had the number of their message
#   astray            how many of the card's stamps were more than 250 ms off
#   layout            the control messages, with what does not change
import ctypes
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
    "TX_SCHED": 1 << 8, "TX_ACK": 1 << 9, "OPT_TSONLY": 1 << 11, "OPT_TX_SWHW": 1 << 14,
}
STATIONS = sum(FLAGS[name] for name in ("TX_HARDWARE", "TX_SOFTWARE", "TX_SCHED", "TX_ACK"))
IP_MINTTL = 21
IP_RECVERR = 11
MSG_ERRQUEUE = 0x2000
SKEW_NS = 250 * 10**6
LEN = 20
LAST = b"end"
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


def accept_first(listener):
    listener.listen()
    listener.setblocking(False)
    try:
        # the first accept makes it accelerated
        listener.accept()
    except BlockingIOError:
        listener.setblocking(True)
    print("ready", flush=True)
    return listener.accept()[0]


def receive(kind, address, port, *names):
    flags = sum(FLAGS[name] for name in names)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == "udp" else
                      socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, int(port)))
    if kind == "tcp":
        s = accept_first(s)
        s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, flags)
    else:
        s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, flags)
        print("ready", flush=True)
    seen = Seen()
    s.settimeout(20)
    try:
        while True:
            data, ancillary, _, _ = s.recvmsg(LEN, 1024)
            if not data and kind == "tcp" or data == LAST:
                break
            seen.note(ancillary)
            s.settimeout(10)
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
    if kind == "udp":
        s.send(LAST)


def await_acks(s):
    end = time.monotonic() + 5
    # tcpi_unacked
    while struct.unpack("=I", s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 28)[24:]) != (0,):
        if time.monotonic() > end:
            print("nobody acknowledges")
            break


def connected(kind, address, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == "udp" else
                      socket.SOCK_STREAM)
    s.connect((address, int(port)))
    # by then the neighbour is known
    for _ in range(30):
        s.send(b".")
        time.sleep(0.01)
    if kind == "tcp":
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await_acks(s)
    return s


def accepted(address, port, flags):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, flags)
    listener.bind((address, int(port)))
    s = accept_first(listener)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


# What waits for a record, by the name of how it does that.
def waiter(how, s):
    if how in ("poll", "cmsg"):
        poll = select.poll()
        poll.register(s, 0)
        return lambda: bool(poll.poll(10000))
    if how == "epoll":
        epoll = select.epoll()
        epoll.register(s, 0)
        return lambda: bool(epoll.poll(10))
    return lambda: True


def record_of(s, how):
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            return s.recvmsg(65536, 1024, MSG_ERRQUEUE | socket.MSG_DONTWAIT)
        except BlockingIOError:
            if how != "spin":
                print("ready, and there is nothing")
                break
    return None


def told_number(record):
    for level, kind, body in record[1]:
        if (level, kind) == (socket.IPPROTO_IP, IP_RECVERR):
            return struct.unpack("=I", body[12:16])[0]
    return -1


# What records say.
class Records:
    def __init__(self):
        self.soft, self.card, self.layouts = [], [], set()
        self.cnt = self.numbered = self.astray = 0

    # `number`: of the message; `before`: when it was sent
    def note(self, record, number, before):
        data, ancillary, flags, _ = record
        after = time.time_ns()
        self.cnt += 1
        layout = ["len %d flags %#x" % (len(data), flags)]
        for level, kind, body in ancillary:
            layout.append("%d/%d/%d" % (level, kind, len(body)))
            if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPING):
                times = struct.unpack("=6q", body)
                if any(times[:2]):
                    self.soft.append(times[0] * 10**9 + times[1])
                if any(times[4:]):
                    self.card.append(times[4] * 10**9 + times[5])
                    self.astray += not before - SKEW_NS < self.card[-1] < after + SKEW_NS
            if (level, kind) == (socket.IPPROTO_IP, IP_RECVERR):
                layout.append(str(struct.unpack("=I4BI", body[:12])) + body[16:].hex())
                self.numbered += told_number(record) == number
        self.layouts.add(" ".join(layout))

    def tell(self):
        print("records", self.cnt)
        print("numbered", self.numbered)
        print("soft", len(self.soft))
        print("card", len(self.card))
        print("astray", self.astray)
        print("disorder", sum(b < a for a, b in zip(self.card, self.card[1:])))
        for layout in self.layouts:
            print("layout", layout)


# Nothing is left to read, but of a stream what a busy machine has sent twice, up to `number`.
def end_records(s, number=-1):
    try:
        while True:
            record = s.recvmsg(65536, 1024, MSG_ERRQUEUE | socket.MSG_DONTWAIT)
            if not 0 <= told_number(record) <= number:
                print("one more", record)
    except BlockingIOError:
        pass


# The number of message `i` of a length.
def number_of(kind, i, length):
    return {"udp": i, "tcp": i * length + length - 1, "accepted": 0, "early": 0}[kind]


def sent(kind, how, address, port, count, length, each, *names):
    flags = sum(FLAGS[name] for name in names)
    length = int(length)
    if kind == "accepted":
        s = accepted(address, port, flags)
    elif kind == "early":
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, flags)
        s.connect((address, int(port)))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    else:
        s = connected(kind, address, port)
        s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING,
                     flags & ~STATIONS if how == "cmsg" else flags)
    control = [(socket.SOL_SOCKET, SO_TIMESTAMPING, struct.pack("=I", flags & STATIONS))]
    wait = waiter(how, s)
    records = Records()
    for i in range(int(count)):
        before = time.time_ns()
        s.sendmsg([b"x" * length], control if how == "cmsg" else [])
        number = number_of(kind, i, length)
        for _ in range(int(each)):
            record = record_of(s, how) if wait() else None
            # a machine that is busy has sent something twice
            while record and kind == "tcp" and told_number(record) < number:
                record = record_of(s, how) if wait() else None
            if not record:
                break
            records.note(record, number, before)
    end_records(s, -1 if kind == "udp" else number)
    records.tell()


def again(address, port, *names):
    s = connected("tcp", address, port)
    s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, sum(FLAGS[name] for name in names))
    records = Records()
    poll = select.poll()
    poll.register(s, 0)
    before = time.time_ns()
    s.send(b"x" * 1000)
    while poll.poll(500 if records.cnt > 1 else 10000):
        records.note(record_of(s, "poll"), 999, before)
    records.tell()


def moved(way, when, address, port, count):
    s = connected("tcp", address, port)
    s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, sum(FLAGS[name] for name in (
        "TX_HARDWARE", "RAW_HARDWARE", "TX_SOFTWARE", "SOFTWARE", "OPT_ID", "OPT_TSONLY")))
    records = Records()
    poll = select.poll()
    poll.register(s, 0)
    before = time.time_ns()
    told = set()
    for half in range(2):
        for _ in range(int(count)):
            s.send(b"x" * LEN)
            # of two in a segment the kernel tells one
            if half == 1 or when == "later":
                await_acks(s)
        if half == 0:
            if way == "back":
                s.setsockopt(socket.IPPROTO_IP, IP_MINTTL, 1)
            else:
                ctypes.CDLL(None).softcx_remove(b"mlx5_0")
        # by the end of the second in which nothing is told the connection is the kernel's
        while (half == 0 or len(told) < 2 * int(count)) and poll.poll(1000):
            record = record_of(s, "poll")
            # a segment that is sent again is stamped again
            if record and told_number(record) not in told:
                records.note(record, number_of("tcp", len(told), LEN), before)
                told.add(told_number(record))
    records.tell()


def left(kind, address, port, count):
    for _ in range(int(count)):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == "udp" else
                          socket.SOCK_STREAM)
        s.connect((address, int(port)))
        s.send(b".")
        s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING,
                     FLAGS["TX_HARDWARE"] | FLAGS["RAW_HARDWARE"] | FLAGS["OPT_TSONLY"])
        for _ in range(3):
            s.send(b".")
        s.close()


def drain(address, port):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, int(port)))
    listener.listen(1000)
    print("ready", flush=True)
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    sockets = {listener.fileno(): listener}
    while True:
        for fd, _ in poll.poll():
            if fd == listener.fileno():
                s, _ = listener.accept()
                sockets[s.fileno()] = s
                poll.register(s, select.POLLIN)
            elif not sockets[fd].recv(65536):
                poll.unregister(fd)
                sockets.pop(fd).close()


def call(address, port):
    s = socket.create_connection((address, int(port)))
    while s.recv(65536):
        pass


commands = {"send": send, "sent": sent, "again": again, "moved": moved, "left": left,
            "drain": drain, "call": call}
command = commands.get(sys.argv[1])
command(*sys.argv[2:]) if command else receive(*sys.argv[1:])
