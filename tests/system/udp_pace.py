#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Senders with SO_MAX_PACING_RATE, and who measures what comes of it (udp_pace.sh)."""
import ctypes
import os
import signal
import socket
import struct
import sys
import threading
import time

SO_MAX_PACING_RATE = 47
NONE = 0xFFFFFFFF
PEER = ("10.78.0.2", 7000)
LENGTH = 1000
# what "gather" says, and the library's log
GOT = os.environ["PACE_GOT"]
LOG = os.environ.get("VMA_LOG_FILE")
BEGINS, ENDS = "a queue of a socket begins", "a queue of a socket ends"


def says(file, text):
    try:
        with open(file, errors="replace") as f:
            return text in f.read()
    except FileNotFoundError:
        return False


def until(condition):
    """As a program that stays for a while, since its data has to leave."""
    deadline = time.monotonic() + 40
    while not condition():
        if time.monotonic() > deadline:
            sys.exit("waited in vain")
        time.sleep(0.02)


def until_all_have_come():
    until(lambda: says(GOT, "ms "))


def pace_of(text):
    """"1000000": bytes a second, as Linux has it; "8000:65000:1000": VMA's struct."""
    if ":" in text:
        return struct.pack("IIHxx", *map(int, text.split(":")))
    return struct.pack("I", int(text) & NONE)


def paced(text):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, pace_of(text))
    return s


def send(s, cnt, first=0):
    for i in range(first, first + int(cnt)):
        s.sendto(b"%d." % i + b"x" * (LENGTH - len(b"%d." % i)), PEER)


def gather(cnt):
    """How many came, whether in their order, and the milliseconds from first to last."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_TIMESTAMPNS_OLD
                 if hasattr(socket, "SO_TIMESTAMPNS_OLD") else 35, 1)
    s.bind(PEER)
    s.settimeout(20)
    print("ready", flush=True)
    times, numbers = [], []
    try:
        while len(numbers) < int(cnt):
            data, control, _, _ = s.recvmsg(70000, 200)
            sec, ns = struct.unpack("qq", control[0][2][:16])
            times.append(sec * 1000 + ns / 1e6)
            numbers.append(int(data.split(b".")[0]))
            if len(numbers) % 20 == 0:
                open("%s.%d" % (GOT, len(numbers)), "w").close()
            s.settimeout(15)
    except OSError:
        pass
    print("got", len(numbers), "sorted", numbers == sorted(numbers), flush=True)
    print("ms", round(times[-1] - times[0]) if times else -1, flush=True)


def once(pace, cnt):
    s = paced(pace)
    begin = time.monotonic()
    send(s, cnt)
    print("sent in", round((time.monotonic() - begin) * 1000), flush=True)
    until_all_have_come()


def lengths(pace, *lens):
    """One datagram of each length."""
    s = paced(pace)
    for i, n in enumerate(lens):
        s.sendto(b"%d." % i + b"x" * (int(n) - 2), PEER)
    until_all_have_come()


def closing(pace, cnt):
    s = paced(pace)
    send(s, cnt)
    s.close()
    until(lambda: says(LOG, ENDS))


def changing(cnt, *paces):
    """A part of the datagrams at each pace."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for i, pace in enumerate(paces):
        s.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, pace_of(pace))
        send(s, cnt, i * int(cnt))
    until_all_have_come()
    if paces[-1] == "-1" and says(LOG, BEGINS):
        until(lambda: says(LOG, ENDS))


def crowd(pace, sockets, cnt):
    each = [paced(pace) for _ in range(int(sockets))]
    for i in range(int(cnt)):
        for s in each:
            send(s, 1)
    until_all_have_come()


def slow_crowd(pace, sockets, cnt):
    """Each of them sends without an end, by blocking sends, all at once. Who has sent so many
    when the first one has sent twice as many, and when all have, or after a while."""
    sent = [0] * int(sockets)

    def blast(i):
        s = paced(pace)
        while True:
            s.sendto(b"x" * 1200, PEER)
            sent[i] += 1

    for i in range(len(sent)):
        threading.Thread(target=blast, args=(i,), daemon=True).start()
    end = time.monotonic() + 30
    while min(sent) < int(cnt) and time.monotonic() < end:
        time.sleep(0.05)
    print("all" if min(sent) >= int(cnt) else sent, flush=True)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    took = []
    for _ in range(3):
        begin = time.monotonic()
        for _ in range(100):
            s.sendto(b"x" * 1200, PEER)
        took.append(time.monotonic() - begin)
    # a machine may stand still, but not in each of them
    print("others", min(took) < 1, flush=True)
    os._exit(0)


def told(s):
    def get(length):
        return s.getsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, length)
    print(*struct.unpack("I", get(4)), *struct.unpack("Q", get(8)),
          *struct.unpack("IIHxx", get(12)))


def reading(kind):
    """What getsockopt says: in 4 bytes, in 8, and in VMA's form."""
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else
                      socket.SOCK_DGRAM)
    told(s)
    for pace in ["1000000", "8000:65000:1000", "99", "-1", "40000000:0:0", "0:0:0"]:
        s.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, pace_of(pace))
        if kind == "udp" and pace == "1000000":
            s.sendto(b"0.", PEER)
        told(s)
    for length in range(4):
        try:
            s.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, b"\1" * length)
        except OSError as e:
            print(length, e)


def serve():
    """How many bytes come by a connection, and the milliseconds until its end."""
    listener = socket.create_server(PEER)
    print("ready", flush=True)
    s, _ = listener.accept()
    begin, n = time.monotonic(), 0
    while data := s.recv(1 << 16):
        n += len(data)
    print("got", n, "sorted True", flush=True)
    print("ms", round((time.monotonic() - begin) * 1000), flush=True)


def stream(pace, cnt):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, pace_of(pace))
    s.connect(PEER)
    s.sendall(bytes(int(cnt)))
    s.shutdown(socket.SHUT_WR)
    s.recv(1)


def forking(pace, cnt):
    """The child sends by the same socket, and ends; then the parent goes on."""
    s = paced(pace)
    send(s, cnt)
    pid = os.fork()
    if not pid:
        send(s, 1, 5000)
        os._exit(0)
    os.waitpid(pid, 0)
    send(s, cnt, 10000)
    until_all_have_come()


def lost(pace, cnt, go):
    """The card goes in the middle."""
    s = paced(pace)
    send(s, cnt)
    until(lambda: os.path.exists("%s.%s" % (GOT, cnt)))
    print("lost", ctypes.CDLL(None).softcx_remove(b"mlx5_0"), flush=True)
    until(lambda: os.path.exists(go))
    send(s, cnt, int(cnt))
    s.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, pace_of("2000000"))
    send(s, cnt, 2 * int(cnt))


def interrupted(pace, cnt):
    """Handlers, with and without SA_RESTART, and a limit on how long a send may take."""
    s = paced(pace)
    seen = []
    signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    signal.siginterrupt(signal.SIGALRM, False)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    send(s, cnt)
    signal.setitimer(signal.ITIMER_REAL, 0)
    print("handlers", len(seen) > 0, flush=True)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 20000))
    try:
        send(s, 2000, 100000)
        print("all")
    except OSError as e:
        print(e, flush=True)


globals()[sys.argv[1]](*sys.argv[2:])
