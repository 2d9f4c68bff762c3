#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is wrong with the TCP segments of one address in a pcap file.

tcp_segments.py FILE ADDRESS LONGEST: lengths, checksums, and flags of each frame, and that
identifications that follow each other differ. Says how many had data, and how many of
these had PSH.
"""
import socket
import struct
import sys

sys.dont_write_bytecode = True
from checksums import fold  # noqa: E402

FIN, PSH, CWR = 1, 8, 0x80
# of so many in a row no two have the same
IDS = 10000


def frames(name):
    with open(name, "rb") as pcap:
        head = pcap.read(24)
        order = "<" if head[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
        while True:
            record = pcap.read(16)
            if len(record) < 16:
                return
            length = struct.unpack(order + "4I", record)[2]
            yield pcap.read(length)


def fault(frame, longest):
    """A word for what is wrong with it, or None."""
    ip = frame[14:]
    length, = struct.unpack("!H", ip[2:4])
    if len(frame) > longest:
        return "too long"
    if length > len(ip) or (length < len(ip) and len(frame) > 60):
        return "length"
    if fold(ip[:20]) != 0xffff:
        return "IP's checksum"
    tcp = ip[20:length]
    pseudo = ip[12:20] + struct.pack("!HH", 6, len(tcp))
    if fold(pseudo + tcp) != 0xffff:
        return "TCP's checksum"
    return None


def main():
    name, address, longest = sys.argv[1], socket.inet_aton(sys.argv[2]), int(sys.argv[3])
    with_data = pushed = finished = 0
    ids = {}
    bad = {}
    for number, frame in enumerate(f for f in frames(name)
                                   if f[12:14] == b"\x08\x00" and f[23] == 6 and
                                   f[26:30] == address):
        wrong = fault(frame, longest)
        ip_id = frame[18:20]
        if number - ids.get(ip_id, -IDS) < IDS:
            wrong = wrong or "an identification again"
        ids[ip_id] = number
        length, = struct.unpack("!H", frame[16:18])
        data = length - 20 - (frame[46] >> 4) * 4
        with_data += data > 0
        pushed += data > 0 and bool(frame[47] & PSH)
        finished += bool(frame[47] & FIN)
        if wrong:
            bad[wrong] = bad.get(wrong, 0) + 1
    print("bad", bad or "none")
    print("with data", with_data)
    print("pushed", pushed)
    print("finished", finished)


main()
