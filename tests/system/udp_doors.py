# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Programs that hand their sockets on. See udp_doors.sh.
import os
import select
import socket
import sys
import time


def bound(port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    s.bind(("10.78.0.1", port))
    return s


def await_all(s):
    """Until the first datagram waits, and the others have had time to come."""
    print("ready", flush=True)
    select.select([s], [], [], 10)
    time.sleep(0.5)


def serve(fd, count):
    """Reads so many, and whatever comes besides; says how many of them differ."""
    s = socket.socket(fileno=fd)
    s.settimeout(3)
    seen = []
    try:
        while len(seen) < count:
            seen.append(s.recv(100))
        s.settimeout(0.3)
        seen.append(s.recv(100))
    except TimeoutError:
        pass
    print("served", len(seen), len(set(seen)), flush=True)


def serve_late(fd, count, port):
    """Not before something has come to another port."""
    go = bound(port)
    print("became", flush=True)
    go.recv(100)
    serve(fd, count)


def become(s, name, *args):
    s.set_inheritable(True)
    os.execv(sys.executable, [sys.executable, __file__, name, str(s.fileno()),
                              *[str(arg) for arg in args]])


def activate(port, count):
    """Waits for traffic, then becomes the program that serves it."""
    s = bound(port)
    await_all(s)
    become(s, "serve", count)


def activate_late(port, count):
    """So too, with the buffer that a socket has by itself."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("10.78.0.1", port))
    await_all(s)
    become(s, "serve_late", count, port + 1)


def hand_over(port, count):
    """To a process that was there before, by a local socket."""
    here, there = socket.socketpair(socket.AF_UNIX)
    pid = os.fork()
    if pid == 0:
        here.close()
        fds = socket.recv_fds(there, 1, 1)[1]
        serve(fds[0], count)
        os._exit(0)
    s = bound(port)
    await_all(s)
    socket.send_fds(here, [b"x"], [s.fileno()])
    s.close()
    os.waitpid(pid, 0)


def send(address, port, count, first=0):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for i in range(first, first + count):
        s.sendto(b"%d" % i, (address, port))


run = {"serve": serve, "serve_late": serve_late, "activate": activate,
       "activate_late": activate_late, "hand_over": hand_over, "send": send}
name, *args = sys.argv[1:]
run[name](*[int(a) if a.isdigit() else a for a in args])
