# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The programs of udp_kill.sh. In namespace b, on the kernel:
#
#   flood                   sends to 10.78.0.1:7000 without end; answers "probe"
#
# in a, on the kernel:
#
#   rounds N alone|child    N times: starts a server under $SERVER_PRELOAD, kills it
#                           under load, and looks what is left. Prints a summary.
#
# and in a, accelerated, started by it:
#
#   serve alone|child FD    an echo on port 7000; the child's copy of the socket
#                           is the kernel's, and what it receives it tells FD
import glob
import os
import re
import select
import signal
import socket
import statistics
import subprocess
import sys
import time

SERVER = ("10.78.0.1", 7000)
FLOOD = ("10.78.0.2", 7001)
LOAD = 300


def udp(name):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(name)
    return s


def flood():
    s = udp(FLOOD)
    s.setblocking(False)
    print("ready", flush=True)
    while True:
        try:
            s.sendto(b"load", SERVER)
        except OSError:
            pass
        readable, _, _ = select.select([s], [], [], 0.0002)
        while readable:
            try:
                data, peer = s.recvfrom(2048)
            except BlockingIOError:
                break
            except OSError:
                continue
            if data == b"probe":
                s.sendto(b"answer", peer)


def serve(kind, fd):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    began = time.perf_counter()
    s.bind(SERVER)
    took = time.perf_counter() - began
    if kind == "child":
        if os.fork() == 0:
            # one for each datagram that the kernel brings
            while True:
                s.recvfrom(2048)
                os.write(int(fd), b"x")
    print("ready", took * 1000, flush=True)
    for i in range(1 << 62):
        data, peer = s.recvfrom(2048)
        s.sendto(data, peer)
        if i in (LOAD, 2 * LOAD):
            print("loaded", flush=True)


def kernel_cnt():
    with open("/proc/net/snmp") as f:
        lines = [line.split() for line in f if line.startswith("Udp:")]
    return int(lines[1][1])


def programs_of(pid):
    ids = set()
    for path in glob.glob("/proc/%d/fdinfo/*" % pid):
        with open(path) as f:
            ids.update(re.findall(r"^prog_id:\s*(\d+)", f.read(), re.M))
    return ids


def has_program(number):
    return subprocess.run(["bpftool", "prog", "show", "id", number],
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def is_gone(condition):
    deadline = time.monotonic() + 5
    while condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def probe():
    """One question, one answer, at once: nobody takes frames away any more."""
    s = udp(SERVER)
    s.settimeout(10)
    s.sendto(b"probe", FLOOD)
    for _ in range(10000):
        if s.recv(2048) == b"answer":
            return


def child_hears(pipe):
    """While the parent lived nothing of the load came to it."""
    readable, _, _ = select.select([pipe], [], [], 10)
    if not readable or not os.read(pipe, 1 << 16):
        raise OSError("the child hears nothing")


def one_round(kind):
    from_child, to_rounds = os.pipe()
    server = subprocess.Popen(
        [sys.executable, __file__, "serve", kind, str(to_rounds)],
        stdout=subprocess.PIPE, text=True, pass_fds=[to_rounds],
        start_new_session=True,
        env=dict(os.environ, LD_PRELOAD=os.environ["SERVER_PRELOAD"]))
    os.close(to_rounds)
    try:
        took = float(server.stdout.readline().split()[1])
        # what came between the kernel's bind and our rings is the kernel's
        if server.stdout.readline() != "loaded\n":
            raise OSError("no load")
        before = kernel_cnt()
        if server.stdout.readline() != "loaded\n":
            raise OSError("no more load")
        programs = programs_of(server.pid)
        by_kernel = kernel_cnt() - before
        if by_kernel * 20 > LOAD or not programs:
            raise OSError("%d of %d by the kernel" % (by_kernel, LOAD))
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
        if kind == "child":
            child_hears(from_child)
        else:
            probe()
        shown = subprocess.run(["ip", "link", "show", "v0"], text=True,
                               stdout=subprocess.PIPE).stdout
        if "xdp" in shown:
            raise OSError("a program is left on v0")
        for number in programs:
            if not is_gone(lambda: has_program(number)):
                raise OSError("program %s is left" % number)
        return took
    finally:
        try:
            os.killpg(server.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        server.wait()
        server.stdout.close()
        os.close(from_child)


def rounds(cnt, kind):
    took = []
    for number in range(int(cnt)):
        try:
            took.append(one_round(kind))
        except (OSError, ValueError, IndexError) as e:
            print("round %d: %r" % (number, e))
            sys.exit(1)
    print("%d rounds, first socket %.1f ms, at most %.1f ms" %
          (len(took), statistics.median(took), max(took)))


globals()[sys.argv[1]](*sys.argv[2:])
