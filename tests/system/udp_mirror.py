# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The mirror of udp_mirror.sh: whatever is sent to its address by IPv4 comes back to the
# sender from there, and what a complaint quotes is turned around, too. Exchanging two
# addresses leaves every checksum as it is.
#
#   udp_mirror.py INTERFACE ADDRESS
import socket
import sys

ICMP = 1
# in a frame, and in what ICMP quotes
SOURCE, QUOTED_SOURCE = 14 + 12, 14 + 20 + 8 + 12


def exchange(frame, at, length):
    frame[at:at + 2 * length] = (frame[at + length:at + 2 * length] +
                                 frame[at:at + length])


name, address = sys.argv[1], socket.inet_aton(sys.argv[2])
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
s.bind((name, 0x0800))
print("ready", flush=True)
while True:
    frame = bytearray(s.recv(70000))
    if frame[SOURCE + 4:SOURCE + 8] != address:
        continue
    exchange(frame, 0, 6)
    exchange(frame, SOURCE, 4)
    if frame[23] == ICMP:
        exchange(frame, QUOTED_SOURCE, 4)
    s.send(frame)
