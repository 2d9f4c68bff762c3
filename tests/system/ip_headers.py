#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The programs of ip_headers.sh.

  ip_headers.py peer               in the other namespace, until a datagram says "end": says
                                   with which TTL, TOS and segment size each exchange came
                                   over the wire
  ip_headers.py SCENARIO           sends in some way

A datagram that the peer gets is an exchange. If it says "connect PORT" so is the connection
that the peer then makes, and so is each connection that it accepts.
"""
import select
import signal
import socket
import struct
import sys

PEER = ("10.78.0.1", 7000)
OWN = "10.78.0.2"
PORT = 8000
IP_TTL, IP_TOS = socket.IP_TTL, socket.IP_TOS
LENGTH = 5000


# -- the wire -----------------------------------------------------------------

class Wire:
    """What has come of the program, in the order in which it came. The kernel puts a frame
    here before any socket gets what is in it."""

    def __init__(self):
        self.link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                  socket.htons(0x0800))
        self.link.bind(("v0", 0))
        self.link.setblocking(False)

    def frames(self):
        while True:
            try:
                frame, origin = self.link.recvfrom(70000)
            except BlockingIOError:
                return
            if origin[2] != socket.PACKET_OUTGOING and \
                    frame[26:30] == socket.inet_aton(OWN):
                yield frame[14:]

    def tell_datagram(self, what):
        headers = {header(ip) for ip in self.frames() if ip[9] == socket.IPPROTO_UDP}
        print("datagram %s" % what, sorted(headers), flush=True)

    def tell_connection(self, what, sock):
        """But for the last words of the one before, which may come at any time."""
        ports = struct.pack("!HH", sock.getpeername()[1], sock.getsockname()[1])
        headers, sizes = set(), set()
        for ip in self.frames():
            if ip[9] != socket.IPPROTO_TCP or ip[20:24] != ports:
                continue
            headers.add(header(ip))
            if ip[33] & 2:
                sizes.add(segment_size(ip[40:20 + (ip[32] >> 4) * 4]))
        print(what, sorted(headers), *sorted(sizes), flush=True)


def header(ip):
    return "ttl %d tos %#x" % (ip[8], ip[1])


def segment_size(options):
    while options and options[0] != 0:
        if options[0] == 1:
            options = options[1:]
            continue
        if options[0] == 2:
            return "offers segments of %d" % struct.unpack("!H", options[2:4])
        options = options[options[1]:]
    return "offers no segment size"


def take_all(sock):
    """The program waits for what the peer answers, so what follows is all of it."""
    got = 0
    while got < LENGTH:
        got += len(sock.recv(65536))
    return sock


def peer():
    wire = Wire()
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(PEER)
    tcp = socket.create_server(PEER)
    print("ready", flush=True)
    while True:
        ready = select.select([udp, tcp], [], [])[0]
        if tcp in ready:
            sock = take_all(tcp.accept()[0])
            wire.tell_connection("connected", sock)
            sock.sendall(b".")
            sock.recv(1)
            continue
        data, name = udp.recvfrom(65536)
        words = data.split(b"\0")[0].decode().split()
        if words[0] == "end":
            return
        wire.tell_datagram(words[0])
        udp.sendto(b".", name)
        if words[0] != "connect":
            continue
        sock = take_all(socket.create_connection((OWN, int(words[1]))))
        wire.tell_connection("accepted", sock)
        sock.sendall(b".")
        sock.recv(1)


# -- scenarios ----------------------------------------------------------------

def exchange(sock, name, length=100, control=()):
    sock.sendmsg([name.encode().ljust(length, b"\0")], control, 0, PEER)
    sock.recv(1)


def number(name, value):
    return (socket.IPPROTO_IP, name, struct.pack("=i", value))


def set_option(sock, name, value):
    sock.setsockopt(socket.IPPROTO_IP, name, value)
    print("option %d" % name, sock.getsockopt(socket.IPPROTO_IP, name), flush=True)


def tell_beginning(sock):
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 84)
    rto, = struct.unpack_from("=I", info, 8)
    window, = struct.unpack_from("=I", info, 80)
    print("begins with %d segments," % window,
          "repeats soon" if rto < 150000 else "repeats as usual", flush=True)


def converse(sock):
    tell_beginning(sock)
    sock.sendall(b"x" * LENGTH)
    sock.recv(1)
    sock.close()


def datagrams():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind((OWN, 6000))
        exchange(s, "as-the-route")
        exchange(s, "cut", 4000)
        exchange(s, "of-one-send", 100, [number(IP_TTL, 3)])
        exchange(s, "as-the-route-again")
        set_option(s, IP_TTL, 64)
        exchange(s, "as-the-system")
        set_option(s, IP_TTL, 200)
        exchange(s, "chosen")
        s.setsockopt(socket.IPPROTO_IP, IP_TTL, bytes([255]))
        exchange(s, "chosen-by-a-byte")
        s.setsockopt(socket.IPPROTO_IP, IP_TTL, -1)
        exchange(s, "not-chosen-any-more")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        set_option(s, IP_TTL, 64)
        s.bind((OWN, 6000))
        exchange(s, "chosen-before")
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
        s.bind(("::ffff:" + OWN, 6000))
        for value in (None, 77, -1):
            if value is not None:
                s.setsockopt(socket.IPPROTO_IP, IP_TTL, value)
            s.sendto(b"mapped", ("::ffff:" + PEER[0], PEER[1]))
            s.recv(1)


def connections():
    for ttl in (None, 64, 200, -1):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
            if ttl is not None:
                s.setsockopt(socket.IPPROTO_IP, IP_TTL, ttl)
            s.connect(PEER)
            converse(s)


def accept_one(listener, udp):
    # a listener that does not block is known when its first accept has found nothing
    try:
        listener.accept()
    except BlockingIOError:
        pass
    exchange(udp, "connect %d" % PORT)
    select.select([listener], [], [])
    sock = listener.accept()[0]
    sock.setblocking(True)
    print("accepted", [sock.getsockopt(socket.IPPROTO_IP, name)
                       for name in (IP_TTL, IP_TOS)], flush=True)
    converse(sock)


def listeners(options):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind((OWN, 6000))
        with socket.create_server((OWN, PORT)) as listener:
            listener.setblocking(False)
            accept_one(listener, udp)
            for name, value in options:
                set_option(listener, name, value)
                accept_one(listener, udp)


def by_the_route():
    listeners([])


def later_options():
    listeners([(IP_TTL, 33), (IP_TOS, 0x48), (IP_TTL, 64)])


signal.alarm(60)
globals()[sys.argv[1]]()
if sys.argv[1] != "peer":
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"end", PEER)
