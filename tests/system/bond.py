# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The unmodified programs of bond_card.sh.
#
#   bond.py talk ADDRESS PORT FILE    one connection to an echo, block by block until there
#                                     is the file: how many blocks came back as they were,
#                                     and the longest time in milliseconds that one took
#   bond.py late ADDRESS PORT         an echo for one connection, which the kernel is asked
#                                     for first: it accepts when that has answered
#   bond.py flows ADDRESS PORT CNT LEN
#                                     so many sockets, each of which asks an echo twenty
#                                     times: how many answers were right, and how many
#                                     there were in all
import os
import signal
import socket
import sys
import time


def talk(address, port, file):
    s = socket.create_connection((address, int(port)), timeout=20)
    s.settimeout(20)
    answers = s.makefile("rb")
    right = longest = 0
    print("talking", flush=True)
    while not os.path.exists(file):
        block = b"%d " % right * 800
        begun = time.monotonic()
        s.sendall(block)
        if answers.read(len(block)) != block:
            break
        longest = max(longest, time.monotonic() - begun)
        right += 1
    print("right", right, "longest", round(longest * 1000), "ms")


def has_half_open(port):
    with open("/proc/net/tcp") as f:
        rows = [line.split() for line in f][1:]
    return any(row[1].endswith(":%04X" % port) and row[3] == "03" for row in rows)


def late(address, port):
    listener = socket.create_server((address, int(port)))
    print("listening", flush=True)
    while not has_half_open(int(port)):
        time.sleep(0.01)
    listener.settimeout(20)
    s, _ = listener.accept()
    while data := s.recv(1 << 16):
        s.sendall(data)


def flows(address, port, cnt, length):
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
               for _ in range(int(cnt))]
    right = total = 0
    for s in sockets:
        s.connect((address, int(port)))
        s.settimeout(10)
    for i in range(20):
        for at, s in enumerate(sockets):
            data = (b"%d of %d" % (i, at)).ljust(int(length), b".")
            s.send(data)
            right += s.recv(70000) == data
            total += 1
    # nothing says that no more will come
    time.sleep(0.2)
    for s in sockets:
        s.setblocking(False)
        try:
            while s.recv(70000):
                total += 1
        except BlockingIOError:
            pass
    print("right", right, "of", total)


# nobody may be left behind
signal.alarm(60)
globals()[sys.argv[1]](*sys.argv[2:])
