# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The programs of udp_hostile.sh.
#
#   collect FILE          receives on port 7000 until "end", and writes down the
#                         numbers of the frames whose datagrams came
#   blast MAC SEED        sends frames that lie, numbered, to port 7000
#   name SEED NUMBER...   what these frames were
#   fragments MAC CNT     first fragments, whose others never come
#   slow                  an echo that sleeps when told, while its queue fills
#   flood CNT             so many datagrams as fast as they go
#   dropping UID          an echo that gives up root, and answers on a second port
#                         which it takes afterwards
#   dropping_early UID CNT
#                         gives up root behind its first socket; so many more are
#                         echoes, on ports from 10001 on
#   sending               sends to 10.78.0.2:7000 without end, and says how it goes
#   many CNT              asks from so many ports in turn; prints how many were right
#   count                 says how many came when asked, and begins anew with the next
#                         question
#   bursts CNT...         sends so many at a time, and prints how many were lost
#   tcp_echo ADDRESS PORT an echo of as many connections as come
#   tcp_talk ADDRESS PORT one connection that goes on for a while, and others meanwhile
import os
import random
import resource
import select
import socket
import struct
import sys
import threading
import time

from checksums import checksum

SERVER, CLIENT = "10.78.0.1", "10.78.0.2"
PORT = 7000
IFNAME = "v0"


def udp(name=None):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if name:
        s.bind(name)
    return s


# -- frames ------------------------------------------------------------------

def ip(data, src=CLIENT, proto=17, options=b"", total=None, ihl=None, version=4,
       frag=0, ttl=64, dst=SERVER, bad_sum=0):
    ihl = 5 + len(options) // 4 if ihl is None else ihl
    total = 20 + len(options) + len(data) if total is None else total
    head = struct.pack("!BBHHHBBH4s4s", version << 4 | ihl, 0, total & 0xffff, 7,
                       frag, ttl, proto, 0, socket.inet_aton(src),
                       socket.inet_aton(dst)) + options
    sum_ = checksum(head) ^ bad_sum
    return head[:10] + struct.pack("!H", sum_) + head[12:] + data


def datagram(number, src=CLIENT, length=None, sum_=None, sport=7001, dport=PORT,
             tail=b"", dst=SERVER):
    data = struct.pack("!I", number) + tail
    length = 8 + len(data) if length is None else length
    head = struct.pack("!HHHH", sport, dport, length & 0xffff, 0)
    if sum_ is None:
        pseudo = socket.inet_aton(src) + socket.inet_aton(dst) + struct.pack(
            "!BBH", 0, 17, length & 0xffff)
        sum_ = checksum(pseudo + head + data) or 0xffff
    return head[:6] + struct.pack("!H", sum_) + data


def structured():
    """(what, function of the number to what follows the MACs)"""
    def eth(rest, kind=0x0800):
        return struct.pack("!H", kind) + rest

    yield "as it should be", lambda n: eth(ip(datagram(n)))
    yield "padded", lambda n: eth(ip(datagram(n)) + bytes(30))
    for length in list(range(0, 9)) + [11, 13, 100, 1472, 1473, 32768, 65535]:
        yield "UDP length %d" % length, \
            lambda n, length=length: eth(ip(datagram(n, length=length)))
        yield "UDP length %d, no checksum" % length, \
            lambda n, length=length: eth(ip(datagram(n, length=length, sum_=0)))
        yield "UDP length %d, tail" % length, \
            lambda n, length=length: eth(ip(datagram(n, length=length,
                                                     tail=bytes(200))))
    for total in list(range(0, 34)) + [60, 1500, 1501, 32768, 65535]:
        yield "IP length %d" % total, \
            lambda n, total=total: eth(ip(datagram(n), total=total))
        yield "IP length %d, padded" % total, \
            lambda n, total=total: eth(ip(datagram(n), total=total) + bytes(99))
    for ihl in range(16):
        yield "header length %d" % ihl, lambda n, ihl=ihl: eth(
            ip(datagram(n), ihl=ihl))
        yield "version %d" % ihl, lambda n, version=ihl: eth(
            ip(datagram(n), version=version))
    for cut in range(2, 46):
        yield "cut to %d bytes" % (12 + cut), \
            lambda n, cut=cut: eth(ip(datagram(n)))[:cut]
    yield "wrong IP checksum", lambda n: eth(ip(datagram(n), bad_sum=0x100))
    yield "wrong UDP checksum", lambda n: eth(ip(datagram(n, sum_=0x1234)))
    yield "no UDP checksum", lambda n: eth(ip(datagram(n, sum_=0)))
    for src in ("0.0.0.0", "0.1.2.3", "127.0.0.1", "127.9.9.9", SERVER,
                "10.79.0.1", "224.0.0.1", "239.1.1.1", "240.1.2.3",
                "255.255.255.255", "10.78.0.255", "10.78.0.77", "192.0.2.1"):
        yield "from " + src, lambda n, src=src: eth(ip(datagram(n, src=src),
                                                       src=src))
    for dst in ("10.79.0.1", "10.78.0.99", "10.78.0.255", "224.0.0.1",
                "255.255.255.255", "127.0.0.1", "0.0.0.0"):
        yield "to " + dst, lambda n, dst=dst: eth(ip(datagram(n, dst=dst),
                                                     dst=dst))
    for option in (b"\1\1\1\1", b"\0\0\0\0", b"\x83\x03\x04\0", b"\x07\x03\x04\0",
                   b"\x94\x04\0\0", b"\x44\x08\x05\0\0\0\0\0", b"\xff\xff\xff\xff"):
        yield "options %s" % option.hex(), \
            lambda n, option=option: eth(ip(datagram(n), options=option))
    for frag in (0x2000, 0x4000, 0x8000, 0x0001, 0x1fff, 0x2001, 0x6000):
        yield "fragment %04x" % frag, \
            lambda n, frag=frag: eth(ip(datagram(n), frag=frag))
    for tag in (0x8100, 0x88a8):
        yield "tag %04x" % tag, lambda n, tag=tag: eth(
            struct.pack("!HH", 5, 0x0800) + ip(datagram(n)), kind=tag)
    yield "priority tag", lambda n: eth(
        struct.pack("!HH", 0, 0x0800) + ip(datagram(n)), kind=0x8100)
    for kind in (0, 0x0600, 0x0806, 0x86dd, 0xffff):
        yield "type %04x" % kind, lambda n, kind=kind: eth(
            ip(datagram(n)), kind=kind)
    for proto in (0, 1, 2, 6, 50, 132, 136, 255):
        yield "protocol %d" % proto, \
            lambda n, proto=proto: eth(ip(datagram(n), proto=proto))
    for port in (0, 1, 65535):
        yield "from port %d" % port, \
            lambda n, port=port: eth(ip(datagram(n, sport=port)))
    for port in (0, 1, 6999, 65535):
        yield "to port %d" % port, \
            lambda n, port=port: eth(ip(datagram(n, dport=port)))
    for ttl in (0, 1, 255):
        yield "TTL %d" % ttl, lambda n, ttl=ttl: eth(ip(datagram(n), ttl=ttl))


def frames(mac, seed):
    """(number, what, frame), the same for the same seed."""
    mac = bytes.fromhex(mac.replace(":", ""))
    head = mac + bytes.fromhex("020000000099")
    number = 0
    for what, make in structured():
        number += 1
        yield number, what, head + make(number)
    for other in ("ffffffffffff", "01005e000001", "020000000055"):
        number += 1
        yield number, "to " + other, bytes.fromhex(other) + head[6:] + \
            struct.pack("!H", 0x0800) + ip(datagram(number))
    rand = random.Random(seed)
    for _ in range(2000):
        number += 1
        frame = bytearray(head + struct.pack("!H", 0x0800) + ip(datagram(number)))
        at = [rand.randrange(12, 42) for _ in range(rand.randrange(1, 4))]
        for i in at:
            frame[i] = rand.choice((0, 1, 0x7f, 0x80, 0xff, rand.randrange(256)))
        if rand.randrange(2):
            frame[24:26] = b"\0\0"
            frame[24:26] = struct.pack("!H", checksum(bytes(frame[14:34])))
        if rand.randrange(2):
            frame[40:42] = b"\0\0"
        yield number, "bytes %s" % at, bytes(frame)


def packet_socket():
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind((IFNAME, 0))
    return s


def blast(mac, seed):
    s = packet_socket()
    for number, _, frame in frames(mac, int(seed)):
        s.send(frame)
        if number % 20 == 0:
            time.sleep(0.002)
    print("sent", number)


def name(seed, *numbers):
    wanted = {int(n) for n in numbers}
    for number, what, _ in frames("020000000001", int(seed)):
        if number in wanted:
            print(number, what)


def fragments(mac, cnt):
    s = packet_socket()
    head = bytes.fromhex(mac.replace(":", "")) + bytes.fromhex("0200000000990800")
    for i in range(int(cnt)):
        s.send(head + ip(datagram(i, tail=bytes(500)), frag=0x2000,
                         src="10.78.%d.%d" % (1 + i // 250 % 250, i % 250)))


# -- programs ----------------------------------------------------------------

def collect(path):
    s = udp(("0.0.0.0", PORT))
    # all of them, if it stands still meanwhile
    s.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)  # SO_RCVBUFFORCE
    print("ready", flush=True)
    seen = set()
    # what came by another way than the end may have to be read after it
    try:
        while True:
            data = s.recv(65536)
            if data == b"end":
                s.setblocking(False)
            else:
                seen.add("%d of %d" % (int.from_bytes(data[:4], "big"), len(data)))
    except BlockingIOError:
        pass
    with open(path, "w") as f:
        f.write("".join(line + "\n" for line in sorted(seen)))


def slow():
    s = udp(("0.0.0.0", PORT))
    print("ready", flush=True)
    while True:
        data, peer = s.recvfrom(2048)
        if data == b"sleep":
            time.sleep(1)
        elif data != b"load":
            s.sendto(data, peer)


def flood(cnt):
    s = udp()
    s.connect((SERVER, PORT))
    s.send(b"sleep")
    for _ in range(int(cnt)):
        s.send(b"load")


def dropping(uid):
    s = udp(("0.0.0.0", PORT))
    os.setgroups([])
    os.setgid(int(uid))
    os.setuid(int(uid))
    second = udp(("0.0.0.0", PORT + 1))
    print("ready", flush=True)
    while True:
        data, peer = s.recvfrom(2048)
        s.sendto(data, peer)
        data, peer = second.recvfrom(2048)
        second.sendto(data, peer)


def dropping_early(uid, cnt):
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(cnt) + 100, int(cnt) + 100))
    first = udp((SERVER, PORT))
    os.setgid(int(uid))
    os.setuid(int(uid))
    others = [udp((SERVER, 10001 + i)) for i in range(int(cnt))]
    poll = select.epoll()
    by_fd = {}
    for s in [first] + others:
        poll.register(s, select.EPOLLIN)
        by_fd[s.fileno()] = s
    print("ready", flush=True)
    while True:
        for fd, _ in poll.poll():
            by_fd[fd].sendto(*by_fd[fd].recvfrom(2048))


def sending():
    s = udp()
    last, sent = None, 0
    print("ready", flush=True)
    while True:
        try:
            s.sendto(b"%d" % sent, (CLIENT, PORT))
            sent += 1
            said = "well"
        except OSError as e:
            said = e.strerror
        if said != last:
            print(said, flush=True)
        last = said
        if sent % 100 == 0:
            time.sleep(0.001)


def many(cnt):
    sockets = [udp() for _ in range(int(cnt))]
    right = 0
    for i in range(5):
        for number, s in enumerate(sockets):
            s.settimeout(10)
            s.connect((SERVER, PORT))
            s.send(b"%d %d" % (i, number))
            right += s.recv(2048) == b"%d %d" % (i, number)
    print("right", right)


def count():
    s = udp(("0.0.0.0", PORT))
    print("ready", flush=True)
    cnt, question = 0, None
    while True:
        data, peer = s.recvfrom(2048)
        if data[:1] == b"?":
            if data != question:
                question, answer, cnt = data, cnt, 0
            s.sendto(b"%s %d" % (question, answer), peer)
        else:
            cnt += 1


def bursts(*cnts):
    s = udp()
    s.connect((SERVER, PORT))
    s.settimeout(0.5)
    lost = []
    for number, cnt in enumerate(map(int, cnts)):
        for _ in range(cnt):
            s.send(b"x")
        # asked twice, it answers twice
        question, answer = b"?%d" % number, None
        while answer is None:
            try:
                s.send(question)
                while answer is None:
                    words = s.recv(2048).split()
                    answer = int(words[1]) if words[0] == question else None
            except TimeoutError:
                pass
        lost.append(cnt - answer)
    print("lost", sum(lost), *(lost if sum(lost) else ()))


def tcp_echo(address, port):
    listener = socket.create_server((address, int(port)), backlog=100)
    print("ready", flush=True)

    def serve(s):
        while data := s.recv(2048):
            s.send(data)

    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


def say(s, text):
    s.send(text)
    if s.recv(2048) != text:
        raise ValueError("wrong")


def tcp_talk(address, port):
    name = (address, int(port))
    first = socket.create_connection(name, 10)
    say(first, b"hello")
    print("begun", flush=True)
    end = time.monotonic() + 6
    cnt = 0
    while time.monotonic() < end:
        say(first, b"%d" % cnt)
        with socket.create_connection(name, 10) as s:
            s.settimeout(10)
            say(s, b"%d" % cnt)
        cnt += 1
        time.sleep(0.02)
    print("right", cnt, flush=True)


globals()[sys.argv[1]](*sys.argv[2:])
