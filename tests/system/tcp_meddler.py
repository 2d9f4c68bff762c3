# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Somebody in the middle of the cable (cable_lab.sh) who sees what both ends of a connection
# say, a by m0 and b by m1, and speaks in the name of each to the other. Checksums and time
# stamps are right.
#
#   part                    waits until a connection is silent, gives each end bytes that the
#                           other one has not sent, then feeds the argument, and says how
#                           many segments each end has for that, in how many seconds
#   inject                  resets and SYNs inside the window, acknowledgments of what was not
#                           sent, and old data, into streams, until its input ends; says
#                           when there was enough of it
import math
import select
import socket
import struct
import sys
import time

from checksums import checksum

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
MASK = 0xffffffff
LINKS = ("m0", "m1")


def wire(link):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    s.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
    s.bind((link, 0x0800))
    return s


class Segment:
    def __init__(self, frame):
        self.is_tcp = len(frame) >= 54 and frame[23] == 6
        if not self.is_tcp:
            return
        self.front = frame[:34]
        total = struct.unpack_from("!H", frame, 16)[0]
        self.seq, self.ack, offset, self.flags = struct.unpack_from("!IIBB", frame, 38)
        self.head = frame[34:34 + (offset >> 4) * 4]
        self.end = self.seq + total - 20 - len(self.head) + bool(self.flags & FIN) & MASK
        self.ports = struct.unpack_from("!HH", frame, 34)
        # of a conversation that has begun
        self.is_usual = not self.flags & (SYN | RST)

    def forged(self, seq, ack, flags, data=b""):
        """With this one's names and options."""
        ip = bytearray(self.front[14:])
        tcp = bytearray(self.head) + data
        struct.pack_into("!IIBB", tcp, 4, seq & MASK, ack & MASK, tcp[12], flags)
        struct.pack_into("!H", tcp, 16, 0)
        pseudo = ip[12:20] + struct.pack("!BBH", 0, 6, len(tcp))
        struct.pack_into("!H", tcp, 16, checksum(bytes(pseudo + tcp)))
        struct.pack_into("!H", ip, 2, 20 + len(tcp))
        struct.pack_into("!H", ip, 10, 0)
        struct.pack_into("!H", ip, 10, checksum(bytes(ip)))
        return self.front[:14] + bytes(ip) + bytes(tcp)


def listen(wires, seconds, last, heard):
    """For so long; counts what each end says, and remembers the last of it."""
    until = time.monotonic() + seconds
    while True:
        left = until - time.monotonic()
        ready = select.select(wires, [], [], max(left, 0))[0]
        if not ready:
            return
        for w in ready:
            segment = Segment(w.recv(65536))
            if segment.is_tcp and segment.is_usual:
                i = wires.index(w)
                heard[i] += 1
                last[i] = segment


def part():
    wires = [wire(link) for link in LINKS]
    last, heard = [None, None], [0, 0]
    print("ready", flush=True)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        before = list(heard)
        listen(wires, 0.5, last, heard)
        if all(last) and before == heard:
            break
    # what each has sent, and so what the other one has taken
    ends = [segment.end for segment in last]

    def say(i, seq, data=b""):
        """In the name of end i, to the other one."""
        wires[not i].send(last[i].forged(seq, ends[not i], ACK, data))

    heard[:] = 0, 0
    for i in (0, 1):
        say(i, ends[i], b"x" * 100)
    listen(wires, 5, last, heard)
    print("parted:", *heard, flush=True)
    heard[:] = 0, 0
    begun = time.monotonic()
    for k in range(400):
        say(k % 2, ends[k % 2] + (1 << 30 if k % 3 else 1 << 31))
        listen(wires, 0.005, last, heard)
    print("fed:", *heard, "in", math.ceil(time.monotonic() - begun), flush=True)
    heard[:] = 0, 0
    listen(wires, 3, last, heard)
    print("silent:", *heard, flush=True)


def fresh(link):
    """What an end says now, or None."""
    with wire(link) as w:
        w.settimeout(0.5)
        try:
            segment = Segment(w.recv(65536))
        except TimeoutError:
            return None
    return segment if segment.is_tcp and segment.is_usual else None


def inject():
    out = [wire(link) for link in LINKS]
    sent = 0
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        said = [fresh(link) for link in LINKS]
        # of one connection, not of an old and a new one
        if not all(said) or said[0].ports != said[1].ports[::-1]:
            continue
        for i in (0, 1):
            # to the end that has said `to`; no segment of a stream begins there
            to, name = said[i], said[not i]
            behind = to.ack + 4321 + sent % 7
            for seq, ack, flags, data in (
                    (behind, 0, RST, b""), (behind, to.end, RST | ACK, b""),
                    (behind, 0, SYN, b""), (behind, to.end, SYN | ACK, b""),
                    (to.ack, to.end + (1 << 30), ACK, b""),
                    (to.ack - 3000, to.end, ACK | PSH, b"injected" * 100)):
                out[i].send(name.forged(seq, ack, flags, data))
                sent += 1
        # each kind twice for each end; many more where the machine is quick
        if sent == 24:
            print("enough", flush=True)
        time.sleep(0.002)
    print("sent", sent)


globals()[sys.argv[1]]()
