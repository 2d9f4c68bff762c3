# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The unmodified programs of udp_frames.sh.
#
#   udp_frames.py collect ADDRESS PORT CNT LEN   prints the lengths of the datagrams
#                                                that came until there were CNT of LEN
#                                                and nothing more for a second, those of
#                                                one length together, and whether each
#                                                had one sender's text from its beginning
#   udp_frames.py segments ADDRESS PORT CNT LEN  one alone, CNT at once by
#                                                UDP_SEGMENT, one alone, many times
#   udp_frames.py say ADDRESS PORT TEXT          one datagram
import collections
import signal
import socket
import struct
import sys
import time

UDP_SEGMENT = 103
ROUNDS = 10


def collect(address, port, cnt, last):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, int(port)))
    print("ready", flush=True)
    s.settimeout(20)
    lengths = collections.Counter()
    whole = True
    while True:
        try:
            data = s.recv(70000)
        except TimeoutError:
            break
        lengths[len(data)] += 1
        if lengths[int(last)] >= int(cnt):
            s.settimeout(1)
        whole = whole and data == b"<" + b"." * (len(data) - 2) + b">"
    print("lengths", *("%dx%d" % (n, length) for length, n in
                       sorted(lengths.items())),
          "whole" if whole else "torn", flush=True)
    signal.pause()


def segments(address, port, cnt, length):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect((address, int(port)))
    one = b"<" + b"." * (int(length) - 2) + b">"
    for i in range(ROUNDS):
        s.send(b"<" + b"." * 50 + b">")
        s.sendmsg([one * int(cnt)], [(socket.SOL_UDP, UDP_SEGMENT,
                                      struct.pack("H", int(length)))])
        s.send(b"<" + b"." * 51 + b">")
        time.sleep(0.01)


def say(address, port, text):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(text.encode(), (address, int(port)))


signal.alarm(60)
globals()[sys.argv[1]](*sys.argv[2:])
