# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The unmodified programs of vlan_card.sh, and what looks at the wire for it.
#
#   vlan.py priorities ADDRESS PORT   datagrams from one socket whose priority changes
#   vlan.py serve ADDRESS PORT        one connection: sends back what comes
#   vlan.py stream ADDRESS PORT CNT   so many bytes there and back, half of them after
#                                     the priority of the socket has changed
#   vlan.py early ADDRESS PORT        "go", and 20 datagrams of priority 3
#   vlan.py forge INTERFACE TO FROM PORT ID...
#                                     a datagram between two addresses of IP, to the
#                                     port, with each of these tags; its text is $FORGED or
#                                     "tag", and the tag
#   vlan.py collect ADDRESS PORT CNT  prints so many texts
#   vlan.py measure ADDRESS PORT      says of each datagram how many of its length have come
#   vlan.py tags FILE PORT [to|from]  the tags of all frames of the port, or of those to or
#                                     from it, in the order of the wire; equal ones in a
#                                     row count once
#   vlan.py lengths FILE              the lengths of all frames of UDP, each once, in the
#                                     order in which they came up
#   vlan.py drip ADDRESS PORT FILE [LEN]
#                                     1400 bytes, or so many, again and again, until there is
#                                     the file, and ten times more
#   vlan.py watch INTERFACE TEXT CNT  as soon as so many frames have been received whose
#                                     payload begins with the text: their tags, each with
#                                     how many there were
import collections
import os
import signal
import socket
import struct
import sys
import time

TOS = socket.IPPROTO_IP, socket.IP_TOS
PRIORITY = socket.SOL_SOCKET, socket.SO_PRIORITY
SO_MAX_PACING_RATE = 47


def priorities(address, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    to = (address, int(port))
    s.sendto(b"as it is made", to)
    s.setsockopt(*PRIORITY, 3)
    s.sendto(b"priority 3", to)
    s.sendto(b"long " * 200, to)
    s.setsockopt(*PRIORITY, 1)
    s.sendto(b"priority 1, which has no line", to)
    s.setsockopt(*TOS, 0x10)
    s.sendto(b"priority 6 by TOS", to)
    s.sendmsg([b"priority 2 by a control message"],
              [(*TOS, struct.pack("i", 0x08))], 0, to)
    s.sendto(b"fragments " * 400, to)
    s.connect(to)
    s.setsockopt(*PRIORITY, 3)
    s.send(b"priority 3, connected")
    s.setsockopt(*PRIORITY, 0)
    s.send(b"priority 0")
    s.setsockopt(*PRIORITY, 3)
    s.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 10000000)
    s.send(b"priority 3, by a queue of its own")


def serve(address, port):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(*PRIORITY, 3)
    listener.bind((address, int(port)))
    listener.listen()
    listener.settimeout(30)
    print("ready", flush=True)
    s, _ = listener.accept()
    cnt = 0
    while data := s.recv(1 << 16):
        s.sendall(data)
        cnt += len(data)
    print("served", cnt, flush=True)


def take(s, cnt):
    data = b""
    while len(data) < cnt:
        more = s.recv(cnt - len(data))
        if not more:
            break
        data += more
    return data


def stream(address, port, cnt):
    s = socket.create_connection((address, int(port)), timeout=10)
    s.settimeout(10)
    half, right = int(cnt) // 2, 0
    for priority in (0, 3):
        s.setsockopt(*PRIORITY, priority)
        for at in range(0, half, 20000):
            block = b"%d:%d " % (priority, at) * 6000
            block = block[:min(20000, half - at)]
            s.sendall(block)
            right += len(block) if take(s, len(block)) == block else 0
    print("right", right)


def drip(address, port, file, length=1400):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect((address, int(port)))
    print("dripping", flush=True)
    left = 10
    while left:
        left -= os.path.exists(file)
        s.send(bytes(int(length)))
        time.sleep(0.02)


def early(address, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(*PRIORITY, 3)
    s.connect((address, int(port)))
    for i in range(20):
        s.send(b"go" if not i else b"early %d" % i)
    s.send(b"early 20")


def mac_of(interface):
    with open("/sys/class/net/%s/address" % interface) as f:
        return bytes.fromhex(f.read().strip().replace(":", ""))


def ip_sum(header):
    total = sum(struct.unpack(">10H", header))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def forge(interface, to_mac, to, sender, port, *ids):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind((interface, 0))
    for number in ids:
        text = ("%s %s" % (os.environ.get("FORGED", "tag"), number)).encode()
        udp = struct.pack(">4H", 5000, int(port), 8 + len(text), 0) + text
        ip = struct.pack(">2B3H2BH4s4s", 0x45, 0, 20 + len(udp), 7, 0, 64, 17, 0,
                         socket.inet_aton(sender), socket.inet_aton(to))
        ip = ip[:10] + struct.pack(">H", ip_sum(ip)) + ip[12:]
        s.send(bytes.fromhex(to_mac.replace(":", "")) + mac_of(interface) +
               struct.pack(">3H", 0x8100, int(number), 0x0800) + ip + udp)


def collect(address, port, cnt):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, int(port)))
    print("ready", flush=True)
    for _ in range(int(cnt)):
        print(s.recv(100).decode(), flush=True)


def measure(address, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, int(port)))
    print("ready", flush=True)
    cnt = collections.Counter()
    while length := len(s.recv(10000)):
        cnt[length] += 1
        print(cnt[length], "of", length, flush=True)


def watch(interface, text, cnt):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind((interface, 3))
    s.setsockopt(263, 8, 1)  # SOL_PACKET, PACKET_AUXDATA
    seen = collections.Counter()
    print("watching", flush=True)
    while seen.total() < int(cnt):
        frame, control, _, _ = s.recvmsg(2000, 100)
        status, _, _, _, _, tci, _ = struct.unpack("3I4H", control[0][2])
        # the tag lies beside the frame
        if status & 0x10 and frame[42:].startswith(text.encode()):
            seen["%d.%d" % (tci & 0xfff, tci >> 13)] += 1
    print("seen", *["%s x %d" % one for one in sorted(seen.items())], flush=True)


# all but the one that is just being written
def frames(file):
    with open(file, "rb") as f:
        order = "<" if f.read(24)[:1] in b"\xd4\x4d" else ">"
        while len(head := f.read(16)) == 16:
            length = struct.unpack(order + "4I", head)[2]
            frame = f.read(length)
            if len(frame) < length:
                break
            yield frame


# the frames of UDP and TCP, where IP's header begins, and their tags
def packets(file):
    for frame in frames(file):
        kind, = struct.unpack_from(">H", frame, 12)
        tag, at = "none", 14
        if kind == 0x8100:
            tci, kind = struct.unpack_from(">HH", frame, 14)
            tag, at = "%d.%d" % (tci & 0xfff, tci >> 13), 18
        if kind == 0x0800 and frame[at + 9] in (6, 17):
            yield frame, at, tag


def lengths(file):
    print(*dict.fromkeys(len(frame) for frame, _, _ in packets(file)))


def tags(file, port, way="any"):
    seen = []
    for frame, at, tag in packets(file):
        is_first = not struct.unpack_from(">H", frame, at + 6)[0] & 0x1fff
        ports = struct.unpack_from(">HH", frame, at + 20)
        ports = {"from": ports[:1], "to": ports[1:]}.get(way, ports)
        if is_first and int(port) not in ports:
            continue
        if not seen or seen[-1] != tag:
            seen.append(tag)
    print(*seen)


# nobody may be left behind
signal.alarm(60)
globals()[sys.argv[1]](*sys.argv[2:])
