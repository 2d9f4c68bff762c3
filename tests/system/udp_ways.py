# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The programs of udp_ways.sh.
#
#   udp_ways.py peer    hears port 7000 and the group 239.1.1.1 and answers what it
#                       heard, by which interface, with which TTL; "send to ADDRESS"
#                       asks for a datagram to port 7001 of that address, "count to
#                       ADDRESS" for many with numbers
#   udp_ways.py CASE    talks to it, prints what came of it, and waits to be ended
import ctypes
import os
import signal
import socket
import struct
import subprocess
import sys
import time

IP_PKTINFO, IP_RECVTTL = 8, 12
PEER = ("10.78.0.2", 7000)
MINE = 7001


# None is closed before the end.
sockets = []


def udp(address="0.0.0.0", port=0):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sockets.append(s)
    s.settimeout(10)
    if port:
        s.bind((address, port))
    return s


def join(s, group, by):
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                 socket.inet_aton(group) + socket.inet_aton(by))


# Datagrams with numbers. Who gets them says how far they have come, so that not more than
# these are under way.
NUMBERS, UNDER_WAY = 20000, 100


def count(to):
    s = udp()
    s.settimeout(20)
    sent = come = 0
    while come < NUMBERS:
        while sent < min(NUMBERS, come + UNDER_WAY):
            s.sendto(b"%d" % sent, to)
            sent += 1
        come = int(s.recv(100))


def peer():
    s = udp(port=7000)
    s.settimeout(None)
    join(s, "239.1.1.1", PEER[0])
    for option in IP_PKTINFO, IP_RECVTTL:
        s.setsockopt(socket.IPPROTO_IP, option, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    print("ready", flush=True)
    while True:
        data, controls, _, who = s.recvmsg(1000, 100)
        said = {kind: value for _, kind, value in controls}
        by, mine, to = struct.unpack("i4s4s", said[IP_PKTINFO])
        ttl, = struct.unpack("i", said[socket.IP_TTL])
        if data.startswith(b"send to "):
            s.sendto(b"as you wish", (data[8:].decode(), MINE))
            continue
        if data.startswith(b"count to "):
            count((data[9:].decode(), MINE))
            continue
        said = "%s from %s to %s by %s, TTL %d" % (
            data.decode(), who[0], socket.inet_ntoa(to),
            socket.if_indextoname(by), ttl)
        s.sendmsg([said.encode()], [(socket.IPPROTO_IP, IP_PKTINFO,
                                     struct.pack("i4s4s", 0, mine, to))], 0, who)


def hear(s):
    try:
        data, who = s.recvfrom(1000)
        return "%s: %s" % (who[0], data.decode())
    except OSError as e:
        return str(e)


# What the peer says to it, or the error.
def answer(s, text, to):
    try:
        s.sendto(text.encode(), to) if to else s.send(text.encode())
        return hear(s)
    except OSError as e:
        return str(e)


def tell(what, s, text, to=PEER):
    print(what, answer(s, text, to), flush=True)


# The same after a change by which the answer must be another one: it is followed a
# moment later.
def tell_new(what, s, text, to, last):
    end = time.monotonic() + 5
    while (now := answer(s, text, to)) == last and time.monotonic() < end:
        time.sleep(0.01)
    print(what, now, flush=True)
    return now


def ask(what, s, address):
    s.sendto(b"send to " + address.encode(), PEER)
    print(what, hear(s), flush=True)


def multicast():
    s = udp(port=MINE)
    join(s, "239.1.1.2", "10.78.0.1")
    tell("before:", s, "hello")
    ask("member:", s, "239.1.1.2")
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 3)
    tell("sender:", s, "hello all", ("239.1.1.1", 7000))
    c = udp("10.78.0.1", 7002)
    c.connect(("239.1.1.2", MINE))
    c.send(b"hello to myself")
    print("looped:", hear(s))
    m = udp("239.1.1.2", MINE + 2)
    m.settimeout(2)
    print("nobody:", hear(m))
    tell("after:", s, "hello")


def broadcast():
    s = udp(port=MINE)
    everybody = ("10.78.0.255", 7000), ("255.255.255.255", 7000)
    for to in everybody:
        tell("refused:", s, "hello", to)
    ask("heard:", s, "10.78.0.255")
    ask("heard:", s, "255.255.255.255")
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    for to in everybody:
        tell("sent:", s, "hello", to)
    tell("after:", s, "hello")


def devices():
    by = {}
    for name in "v0", "w0":
        by[name] = udp()
        by[name].setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE,
                            name.encode())
        by[name].bind(("0.0.0.0", MINE))
    for address in "10.78.0.1", "10.79.0.1":
        by["v0"].sendto(b"send to " + address.encode(), PEER)
        for name, s in by.items():
            s.settimeout(0.5)
            print("to", address, "on", name, hear(s), flush=True)
    for to in "10.78.0.2", "10.79.0.2":
        for name, s in by.items():
            tell("to %s on %s" % (to, name), s, "hello", (to, 7000))


def ip(*args):
    subprocess.run(("ip", "route") + args, check=True,
                   env=dict(os.environ, LD_PRELOAD=""))


def routes():
    away = "10.99.0.1", 7000
    s, c = udp(), udp()
    by_s, by_c = tell_new("no way:", s, "hello", away, None), None
    ip("add", "10.99.0.1", "via", "10.78.0.2")
    c.connect(away)
    for change in (None, ("replace", "10.99.0.1", "via", "10.79.0.2"),
                   ("del", "10.99.0.1"),
                   ("add", "unreachable", "10.99.0.1"),
                   ("replace", "10.99.0.1", "via", "10.78.0.2")):
        if change:
            ip(*change)
        by_s = tell_new("%s:" % (change,), s, "hello", away, by_s)
        by_c = tell_new("connected:", c, "hello", None, by_c)
        # the first ones after a change may be the kernel's
        for _ in range(20):
            assert answer(s, "hello", away) == by_s
            assert answer(c, "hello", None) == by_c
            time.sleep(0.005)


# The socket is connected to the one that sends to it, and disconnected, again and again,
# and keeps its port. Each number is for it, whatever it is at that moment. Linux itself
# loses one in some ten thousand changes, so the kernel's share may do so, too; and one that
# meets a rule as it changes may overtake others. More than one in a thousand must not.
def renamed():
    connect = ctypes.CDLL(None).connect
    s = udp(port=MINE)
    s.settimeout(20)
    s.sendto(b"count to 10.78.0.1", PEER)
    seen = [0] * NUMBERS
    newest, late = -1, 0
    while newest < NUMBERS - 1:
        data, who = s.recvfrom(100)
        number = int(data)
        seen[number] += 1
        late += number < newest
        newest = max(newest, number)
        if number % 16:
            continue
        s.sendto(b"%d" % (newest + 1), who)
        if number > NUMBERS - 2 * UNDER_WAY:
            continue
        # while those come that this asks for, and some wait here
        for _ in range(5):
            s.connect(who)
            connect(s.fileno(), bytes(16), 16)
    s.sendto(b"%d" % NUMBERS, who)
    for what, cnt in (("twice", seen.count(2)), ("late", late),
                      ("lost", seen.count(0))):
        print(what, "none" if cnt == 0 else
              "few" if cnt * 1000 < NUMBERS and what != "twice" else cnt,
              flush=True)


# Peers that are always new, in the networks 10.99.0 to 10.99.5 behind the same gateway,
# until one of them is elsewhere and one has a peer that nobody reaches.
def crowd():
    s, probe = udp(), udp()
    by = tell_new("no way:", probe, "hello", ("10.99.2.1", 7000), None)
    for change in (("add", "10.99.0.0/16", "via", "10.78.0.2"),
                   ("add", "10.99.2.0/24", "via", "10.79.0.2"),
                   ("add", "unreachable", "10.99.2.1"),
                   ("del", "unreachable", "10.99.2.1"),
                   ("del", "10.99.2.0/24")):
        ip(*change)
        by = tell_new("%s:" % (change,), probe, "hello", ("10.99.2.1", 7000), by)
        for i in range(48):
            to = "10.99.%d.%d" % (i % 6, 1 + i // 6)
            print(to, answer(s, "hello", (to, 7000)), flush=True)


# `nothing` is an empty directory.
def confined(nothing):
    s = udp(port=MINE)
    tell("before:", s, "hello")
    os.chroot(nothing)
    os.chdir("/")
    later = udp(port=MINE + 1)
    for i in range(200):
        s.sendto(b"hello", PEER)
        later.sendto(b"hello", PEER)
        told = hear(s), hear(later)
        time.sleep(0.02)
    print("after:", *told, flush=True)


def elsewhere(namespace):
    s = udp(port=MINE)
    tell("before:", s, "hello")
    fd = os.open(namespace, os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(fd, 0):
        sys.exit(os.strerror(ctypes.get_errno()))
    later = udp(port=MINE + 1)
    tell("later:", later, "hello")
    for i in range(100):
        s.sendto(b"hello", PEER)
        told = hear(s)
    print("after:", told, flush=True)


class Vector(ctypes.Structure):
    _fields_ = [("at", ctypes.c_char_p), ("len", ctypes.c_size_t)]


class Message(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("name_len", ctypes.c_uint),
                ("iov", ctypes.POINTER(Vector)), ("iov_cnt", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("control_len", ctypes.c_size_t),
                ("flags", ctypes.c_int)]


class Counted(ctypes.Structure):
    _fields_ = [("message", Message), ("len", ctypes.c_uint)]


# To a group by an interface that is slower than the program. The first one is for the
# peer.
def batches():
    subprocess.run("tc qdisc add dev v0 root tbf rate 8mbit burst 5k latency 10s".split())
    s = udp(port=MINE)
    s.settimeout(None)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    tell("first:", s, "hello")
    names = [struct.pack("!2xH4s8x", port, socket.inet_aton(to)) for to, port in
             [PEER] + 99 * [("239.9.9.9", 7009)]]
    names = [struct.pack("=H", socket.AF_INET) + name[2:] for name in names]
    text = Vector(bytes(1000), 1000)
    msgs = (Counted * len(names))(*[(Message(name, len(name), ctypes.pointer(text), 1),)
                                    for name in names])
    print("batch:", ctypes.CDLL(None).sendmmsg(s.fileno(), msgs, len(msgs), 0), flush=True)


# By rules the receiver on 7001, what is sent to the peer's 7003, and the connection
# to its 7004 are the kernel's.
def ruled():
    free, receiver, sender, connected = (udp(port=port) for port in
                                         (7010, 7001, 7002, 7003))
    connected.connect(("10.78.0.2", 7004))
    for i in range(50):
        tell("free:", free, "hello")
        tell("receiver:", receiver, "hello")
        sender.sendto(b"hello", ("10.78.0.2", 7003))
    tell("sender:", sender, "hello")
    connected.send(b"hello")


# Whatever the caller left open: the first socket is 3.
os.closerange(3, 100)
signal.alarm(60)
globals()[sys.argv[1]](*sys.argv[2:])
print("done", flush=True)
time.sleep(60)
