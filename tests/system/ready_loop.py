# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# An event loop of Python over many UDP sockets, and who asks each of them.
#
#   ready_loop.py serve SELECTOR ADDRESS CNT   echoes at ports 8000 and up
#   ready_loop.py reach ADDRESS CNT            says how many answer, twice each
import selectors
import socket
import sys

FIRST = 8000


def bound(address, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setblocking(False)
    s.bind((address, port))
    return s


def serve(selector, address, cnt):
    loop = getattr(selectors, selector)()
    for i in range(cnt):
        loop.register(bound(address, FIRST + i), selectors.EVENT_READ)
    print("ready", flush=True)
    while True:
        for key, events in loop.select():
            data, name = key.fileobj.recvfrom(100)
            key.fileobj.sendto(data, name)


def reach(address, cnt):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(10)
    answers = 0
    for again in range(2):
        for i in range(cnt):
            s.sendto(b"%d" % i, (address, FIRST + i))
            try:
                data, name = s.recvfrom(100)
            except TimeoutError:
                continue
            answers += (data, name) == (b"%d" % i, (address, FIRST + i))
    print("reached", answers)


if sys.argv[1] == "serve":
    serve(sys.argv[2], sys.argv[3], int(sys.argv[4]))
else:
    reach(sys.argv[2], int(sys.argv[3]))
