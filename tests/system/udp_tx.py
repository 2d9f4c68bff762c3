# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The programs of udp_tx.sh: one that sends in some way and prints what it was
# told, and one that prints what came over the wire.
#
#   udp_tx.py sniff          until a datagram says "end"
#   udp_tx.py SCENARIO
import errno
import fcntl
import os
import re
import select
import signal
import socket
import struct
import sys
import time
import zlib

from checksums import fold

PEER = ("10.78.0.1", 7000)
SIOCSIFMTU = 0x8922
IP_PKTINFO, IP_MTU_DISCOVER, IP_RECVERR = 8, 10, 11
UDP_CORK = 1
SO_RCVBUFFORCE = 33


# -- the wire -----------------------------------------------------------------

# Frames of the kernel that fit leave their checksum to a card.
def show_datagram(head, data, is_cut):
    pseudo = head[12:20] + struct.pack("!BBH", 0, 17, len(data))
    ports = struct.unpack_from("!HHH", data)
    verdict = "" if not is_cut else \
        ", sum good" if fold(pseudo + data) == 0xffff else ", sum WRONG"
    print("datagram to %d: %d bytes, %08x%s" % (
        ports[1], ports[2] - 8, zlib.crc32(data[8:]), verdict), flush=True)
    return data[8:] == b"end"


# A fragment joins those before it. The datagram, once it is whole.
def join(parts, head, data):
    ident = (head[4:6], head[12:20])
    field = struct.unpack_from("!H", head, 6)[0]
    if field & 0x3fff == 0:
        return data
    whole, seen = parts.get(ident, (b"", False))
    if seen:
        print("identification used twice")
    if len(whole) != (field & 0x1fff) * 8:
        print("fragment out of place")
    is_last = not field & 0x2000
    parts[ident] = (whole + data, is_last)
    return whole + data if is_last else None


def sniff():
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    # hundreds of fragments at once
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
    s.bind(("v0", 0))
    # nobody is refused
    sinks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in "..."]
    for sink, port in zip(sinks, (7000, 7001, 9)):
        sink.bind(("0.0.0.0", port))
    print("ready", flush=True)
    parts = {}
    is_over = False
    while not is_over:
        frame, origin = s.recvfrom(70000)
        head = frame[14:34]
        if origin[2] == socket.PACKET_OUTGOING or head[9] != 17:
            continue
        length, field = struct.unpack_from("!H2xH", head, 2)
        print("%s > %s tos %#04x ttl %d length %d field %#06x" % (
            socket.inet_ntoa(head[12:16]), socket.inet_ntoa(head[16:20]),
            head[1], head[8], length, field))
        data = join(parts, head, frame[34:14 + length])
        if data is not None:
            is_over = show_datagram(head, data, field & 0x3fff)


# -- scenarios ----------------------------------------------------------------

def say(what, call, *args):
    try:
        print(what, call(*args), flush=True)
    except OSError as e:
        print(what, errno.errorcode[e.errno], flush=True)


def udp(*options):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("10.78.0.2", 6000))
    for name, value in options:
        s.setsockopt(socket.IPPROTO_IP, name, value)
    return s


def text(length, seed=0):
    return bytes((i * 7 + i // 251 + seed) % 256 for i in range(length))


LENGTHS = (1, 1472, 1473, 1480, 1481, 2952, 2953, 9000, 32768, 65506, 65507)


def lengths():
    s = udp()
    for n in LENGTHS + (65508,):
        say("sendto %d:" % n, s.sendto, text(n, n), PEER)
    s.connect(PEER)
    for n in LENGTHS:
        say("send %d:" % n, s.send, text(n, n))
    parts = [text(k * 10, k) for k in range(60)]
    say("sendmsg:", s.sendmsg, parts)


# 480 bytes in a fragment: 128 of them, and two datagrams with more.
def pieces():
    s = udp()
    for n in (60000, 128 * 480 - 8, 128 * 480 - 7, 65507):
        say("sendto %d:" % n, s.sendto, text(n, n), PEER)


def show_errors(s):
    while True:
        try:
            data, ancillary, flags, peer = s.recvmsg(
                0, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        for level, kind, value in ancillary:
            if kind == IP_RECVERR:
                print("error", struct.unpack_from("=IBBBBII", value), peer)


# Each value of IP_MTU_DISCOVER.
def discovery():
    for mode in range(6):
        with udp((IP_MTU_DISCOVER, mode), (IP_RECVERR, 1)) as s:
            for n in (100, 1472, 1473, 4000):
                say("mode %d, sendto %d:" % (mode, n), s.sendto, text(n, mode),
                    PEER)
            show_errors(s)
            s.connect(PEER)
            for n in (100, 1472, 1473, 4000):
                say("mode %d, send %d:" % (mode, n), s.send, text(n, mode))
            show_errors(s)


def headers():
    with udp((socket.IP_TTL, 7), (socket.IP_TOS, 0x88)) as s:
        for n in (10, 3000, 5000):
            say("send:", s.sendto, text(n), PEER)
        s.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 200)
        say("send:", s.sendto, text(3000), PEER)


def pktinfo(source, ifindex=0):
    return (socket.IPPROTO_IP, IP_PKTINFO, struct.pack(
        "=i4s4x", ifindex, socket.inet_aton(source)))


def number(name, value):
    return (socket.IPPROTO_IP, name, struct.pack("=i", value))


# Needs 10.78.0.3 on v0 as well.
def controlled():
    v0 = socket.if_nametoindex("v0")
    lo = socket.if_nametoindex("lo")
    wishes = [
        [pktinfo("10.78.0.3")], [pktinfo("10.78.0.2")], [pktinfo("0.0.0.0")],
        [pktinfo("10.78.0.3", v0)], [pktinfo("10.78.0.3", lo)],
        [pktinfo("10.78.0.9")], [pktinfo("10.78.0.3", 999)],
        [number(socket.IP_TTL, 3)], [number(socket.IP_TTL, 0)],
        [number(socket.IP_TOS, 0x44)], [number(socket.IP_TOS, 256)],
        [(socket.IPPROTO_IP, socket.IP_TOS, b"\x64")],
        [number(socket.IP_TTL, 8), pktinfo("10.78.0.3"),
         number(socket.IP_TOS, 0x10)],
        [(socket.IPPROTO_IP, 77, b"")],
    ]
    for address in ("0.0.0.0", "10.78.0.3"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind((address, 6001))
            for n in (20, 1000, 3000):
                for wish in wishes:
                    say("%d, %s:" % (n, wish), s.sendmsg, [text(n)], wish, 0,
                        PEER)
                say("plain:", s.sendto, text(n), PEER)
            say("nowhere:", s.sendmsg, [b"x"], wishes[0])
            s.connect(PEER)
            for wish in wishes:
                say("connected, %s:" % wish, s.sendmsg, [text(9)], wish)
            say("plain:", s.send, text(9))


# What is gathered by the kernel's socket, and what follows it.
def gathered():
    s = udp()
    s.connect(PEER)
    say("more:", s.send, text(1000, 1), socket.MSG_MORE)
    say("rest:", s.send, text(1000, 2))
    say("alone:", s.send, text(10, 3))
    for k in range(3):
        say("more:", s.sendmsg, [text(20, k)], [], socket.MSG_MORE)
    say("rest:", s.send, text(5, 9))
    say("alone:", s.send, text(3000, 4))
    s.setsockopt(socket.IPPROTO_UDP, UDP_CORK, 1)
    for k in range(5):
        say("corked:", s.send, text(700, k))
    s.setsockopt(socket.IPPROTO_UDP, UDP_CORK, 0)
    say("alone:", s.send, text(20, 5))
    say("more to:", s.sendto, text(1400, 6), socket.MSG_MORE, PEER)
    say("rest to:", s.sendto, text(1400, 7), PEER)
    say("alone:", s.send, text(1400, 8))


# An error that came back for one datagram is what the next send says.
def refused():
    s = udp()
    s.connect(("10.78.0.1", 7003))
    for round in range(3):
        say("send:", s.send, text(10, round))
        poll = select.poll()
        poll.register(s, 0)
        print("poll:", [events for fd, events in poll.poll(5000)])
        # a wake-up of ours may come before its own thread has heard of it
        time.sleep(0.1)
        say("send:", s.send, text(20, round))
    say("send:", s.send, text(30))


# What the library, if there is one, has heard of last.
def known_mtu():
    with open(os.environ["VMA_LOG_FILE"]) as f:
        mtus = re.findall(r"v0: MTU (\d+)", f.read())
    return int(mtus[-1]) if mtus else 1500


def set_mtu(mtu):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFMTU, struct.pack("16sI12x", b"v0", mtu))
    while "VMA_LOG_FILE" in os.environ and known_mtu() != mtu:
        time.sleep(0.01)


def changing():
    s = udp()
    s.connect(PEER)
    for mtu in (1500, 1400, 600, 1500):
        set_mtu(mtu)
        for n in (500, 1300, 1400, 3000):
            say("mtu %d, send %d:" % (mtu, n), s.send, text(n, n))


# Until the router's complaint, if there was one, is known everywhere.
def hear():
    time.sleep(0.15)


# What the kernel has learned of them.
def forget_paths():
    with open("/proc/sys/net/ipv4/route/flush", "w") as f:
        f.write("1")


# A link in the middle takes 1000 bytes, which Linux learns from the router, for
# each destination anew. What of it a socket is told, and sends then, depends on
# its mode.
def narrow():
    forget_paths()
    for mode in range(6):
        to = ("10.78.0.%d" % (100 + mode), 7000)
        for name in ("bound", "connected"):
            with udp((IP_MTU_DISCOVER, mode)) as s:
                if name == "connected":
                    s.connect(to)
                for n in (900, 1400, 1400, 973, 972, 3000, 1472, 1473):
                    what = "mode %d, %s, %d:" % (mode, name, n)
                    if name == "connected":
                        say(what, s.send, text(n, mode))
                    else:
                        say(what, s.sendto, text(n, mode), to)
                    hear()
                show_errors(s)
                if name == "connected":
                    say("mtu", s.getsockopt, socket.IPPROTO_IP, 14)
        # each first
        to = ("10.78.0.%d" % (110 + mode), 7000)
        with udp((IP_MTU_DISCOVER, mode), (IP_RECVERR, 1)) as s:
            s.connect(to)
            for n in (1400, 1400, 1400, 3000):
                say("mode %d, send %d:" % (mode, n), s.send, text(n, mode))
                hear()
            show_errors(s)


# What was learned is forgotten after two seconds (net.ipv4.route.mtu_expires), or
# at once; and learned again.
def forgotten():
    forget_paths()
    to = ("10.78.0.100", 7000)
    with udp((IP_MTU_DISCOVER, 2)) as s:
        for round in range(3):
            for n in (1400, 1400, 972):
                say("round %d, %d:" % (round, n), s.sendto, text(n), to)
                hear()
            if round == 1:
                forget_paths()
            # the library asks each second
            time.sleep(3.5)


# Before this program was there, somebody else has been told.
def known():
    for name, mode in (("refused", 2), ("cut", 1)):
        with udp((IP_MTU_DISCOVER, mode)) as s:
            for n in (1400, 973, 972):
                say("%s, %d:" % (name, n), s.sendto, text(n), PEER)


def teach():
    forget_paths()
    with udp((IP_MTU_DISCOVER, 2)) as s:
        s.sendto(text(1400), PEER)
        hear()
        say("taught:", s.sendto, text(1400), PEER)


# nobody may be left behind
signal.alarm(60)
globals()[sys.argv[1]]()
if sys.argv[1] != "sniff":
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"end", ("10.78.0.1", 9))
