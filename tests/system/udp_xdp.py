# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The unmodified programs of udp_xdp.sh.
#
#   udp_xdp.py echo ADDRESS PORT             until "bye"; prints how many
#   udp_xdp.py ask ADDRESS PORT CNT LEN      prints how many answers were right
#   udp_xdp.py forking ADDRESS PORT          an echo that forks first
#   udp_xdp.py closing ADDRESS PORT          an echo that closes all it has first
import os
import signal
import socket
import sys


def echo(address, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, int(port)))
    print("ready", flush=True)
    count = 0
    while True:
        try:
            data, peer = s.recvfrom(70000)
            s.sendto(data, peer)
        except OSError as e:
            print(e, flush=True)
            continue
        count += 1
        if data == b"bye":
            break
    print("echoed", count, flush=True)


def ask(address, port, cnt, length):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(2)
    s.connect((address, int(port)))
    good = 0
    for i in range(int(cnt)):
        data = (b"%d." % i) * int(length)
        data = data[:int(length)]
        s.send(data)
        try:
            good += s.recv(70000) == data
        except OSError as e:
            print(e)
            break
    print("right", good)


def closing(address, port):
    # as daemons do, and then the same again
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, int(port)))
    os.closerange(3, 4096)
    for fd in range(3, 300):
        try:
            os.close(fd)
        except OSError:
            pass
    echo(address, port)


def forking(address, port):
    # the child holds the inherited fds as long as it sleeps
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, int(port)))
    if os.fork() == 0:
        signal.alarm(20)
        signal.pause()
    print("ready", flush=True)
    while True:
        data, peer = s.recvfrom(70000)
        s.sendto(data, peer)


# nobody may be left behind
signal.alarm(60)
globals()[sys.argv[1]](*sys.argv[2:])
