#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What programs do that give up their rights (tcp_rights.sh).

    tcp_rights.py CASE PEER PORT

The peer is tcp_peer, of whose service `echo` each connection asks."""
import ctypes
import errno
import fcntl
import os
import signal
import socket
import struct
import sys
import time

case, peer, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
NOBODY = 65534
FIOASYNC = 0x5452


def connected():
    s = socket.create_connection((peer, port), timeout=10)
    s.settimeout(None)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.sendall(b"echo 0 0\n")
    return s


def echoed(s, cnt):
    good = 0
    for i in range(cnt):
        text = b"%d" % i
        s.sendall(text)
        back = b""
        while len(back) < len(text):
            more = s.recv(100)
            if not more:
                return good
            back += more
        good += back == text
    return good


def say(*words):
    print(*words, flush=True)


def helpers():
    """The processes that keep a right for this one."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                name = file.read().rstrip(b"\0")
        except OSError:
            continue
        if name == b"vma: way back for %d" % os.getpid():
            found.append(int(pid))
    return found


def status_of(pid, *names):
    with open(f"/proc/{pid}/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return [lines[name].strip() for name in names]


def await_true(what):
    end = time.monotonic() + 10
    while not what() and time.monotonic() < end:
        time.sleep(0.01)
    return what()


def goes_on():
    """Connections from before and later are ours; a child has one given back."""
    older = connected()
    say("before", echoed(older, 10))
    os.setuid(NOBODY)
    later = connected()
    say("without rights", echoed(older, 400), echoed(later, 400))


def comes_back():
    """A way back without rights: a child uses what its parent has."""
    s = connected()
    os.setuid(NOBODY)
    say("without rights", echoed(s, 10))
    pid = os.fork()
    if pid == 0:
        say("child", echoed(s, 10))
        os._exit(0)
    say("child ended", os.waitpid(pid, 0)[1])
    say("parent", echoed(s, 10))


def comes_back_with_rights():
    s = connected()
    pid = os.fork()
    if pid == 0:
        say("child", echoed(s, 10))
        os._exit(0)
    say("child ended", os.waitpid(pid, 0)[1])
    say("parent", echoed(s, 10))


def reaper():
    """Orphans come to this process."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    s, other = connected(), connected()
    say("echo", echoed(s, 10), echoed(other, 10))
    say("helpers", len(helpers()))


def goes_unnoticed():
    """Nothing of the helper is to be seen but its name among the processes."""
    heard = []
    signal.signal(signal.SIGCHLD, lambda *_: heard.append(1))
    s = connected()
    fds = sorted(os.listdir("/proc/self/fd"), key=int)
    low = [fd for fd in fds if int(fd) < 1000]
    os.setuid(NOBODY)
    say("descriptors", [fd for fd in sorted(os.listdir("/proc/self/fd"), key=int)
                        if int(fd) < 1000] == low)
    try:
        say("wait", os.wait())
    except ChildProcessError:
        say("no child")
    found = helpers()
    say("helpers", len(found))
    rights, inherited, ambient, filtered = status_of(
        found[0], "CapEff", "CapInh", "CapAmb", "Seccomp")
    say("rights", int(rights, 16) == 1 << 12, int(ambient, 16), filtered)
    say("of its own", len(os.listdir(f"/proc/{found[0]}/fd"))
        if os.geteuid() == 0 else "not to be seen")
    say("session", os.getsid(found[0]) == found[0])
    say("echo", echoed(s, 10), heard)
    print("helper", found[0], file=sys.stderr, flush=True)


def refused(call):
    try:
        call()
        return "done"
    except OSError as e:
        return errno.errorcode[e.errno]


def stays():
    """Nothing goes back: what would need it is refused, and the connection goes on."""
    s = connected()
    say("asynchronous", refused(lambda: fcntl.ioctl(s, FIOASYNC, struct.pack("i", 1))))
    ends = socket.socketpair()
    say("handed on", refused(lambda: socket.send_fds(ends[0], [b"x"], [s.fileno()])))
    ends[0].sendall(b"y")
    say("other end", ends[1].recv(10))
    pid = os.fork()
    if pid == 0:
        say("child", refused(lambda: s.sendall(b"z")), refused(lambda: s.recv(10)))
        os._exit(0)
    os.waitpid(pid, 0)
    say("parent", echoed(s, 10))
    say("helpers", len(helpers()))


def ends_full():
    """With more than the peer takes."""
    s = socket.create_connection((peer, port))
    s.setblocking(False)
    sent, end = 0, time.monotonic() + 0.5
    while time.monotonic() < end:
        try:
            sent += s.send(bytes(65536))
        except BlockingIOError:
            time.sleep(0.01)
    say("full", sent > 100000)
    before = time.monotonic()
    if os.fork():
        os._exit(0)
    # the child of a process that is gone
    while os.getppid() != 1 and time.monotonic() < before + 20:
        time.sleep(0.01)
    say("took", "as long as allowed" if 0.3 <= time.monotonic() - before < 5 else
        time.monotonic() - before)


def reads_late():
    """The peer of ends_full: begins when it is told to, and says how it ended."""
    server = socket.create_server((peer, port))
    say("ready")
    s = server.accept()[0]
    sys.stdin.read(1)
    try:
        while s.recv(1 << 20):
            pass
        say("end")
    except OSError as e:
        say(errno.errorcode[e.errno])


def unseen_setuid():
    """Found in libc itself, past the library."""
    ctypes.CDLL("libc.so.6").setuid(NOBODY)


def unseen():
    """The rights go by a way that the library does not see."""
    s = connected()
    say("helpers", len(helpers()))
    unseen_setuid()
    say("rights", status_of("self", "CapEff")[0].strip("0") or "none")
    later = connected()
    say("without rights", echoed(s, 10), echoed(later, 10))
    pid = os.fork()
    if pid == 0:
        say("child", echoed(s, 10), echoed(later, 10))
        os._exit(0)
    say("child ended", os.waitpid(pid, 0)[1])
    say("parent", echoed(s, 10), echoed(later, 10))


def another_helper():
    """One that is killed is followed by another; meanwhile the process goes without."""
    s = connected()
    found = helpers()
    os.kill(found[0], signal.SIGKILL)
    await_true(lambda: not os.path.exists(f"/proc/{found[0]}") or
               status_of(found[0], "State")[0].startswith("Z"))
    pid = os.fork()
    if pid == 0:
        say("child", echoed(s, 10))
        os._exit(0)
    os.waitpid(pid, 0)
    later = connected()
    say("helpers", len([pid for pid in helpers() if pid != found[0]]))
    say("later", echoed(later, 10), echoed(s, 10))


def no_helper_wanted():
    """No interface is taken for a connection to itself."""
    server = socket.create_server(("127.0.0.1", 0))
    s = socket.create_connection(server.getsockname())
    say("helpers", len(helpers()))


def killed_helper():
    """Without it what is ours stays ours, and new connections are the kernel's."""
    read_end, write_end = os.pipe()
    killer = os.fork()
    if killer == 0:
        os.close(write_end)
        os.kill(int(os.read(read_end, 20)), signal.SIGKILL)
        os._exit(0)
    s = connected()
    os.seteuid(NOBODY)
    found = helpers()
    os.write(write_end, b"%d" % found[0])
    os.waitpid(killer, 0)
    await_true(lambda: not os.path.exists(f"/proc/{found[0]}") or
               status_of(found[0], "State")[0].startswith("Z"))
    say("older", echoed(s, 200))
    later = connected()
    say("later", echoed(later, 10))
    # what is the kernel's on Linux would go back here, and cannot
    say("asynchronous", refused(lambda: fcntl.ioctl(s, FIOASYNC, struct.pack("i", 1))))
    other = socket.socket()
    try:
        other.bind(s.getsockname())
        say("its port was given up")
    except OSError as e:
        say("its port", errno.errorcode[e.errno])
    # another one is there when the right goes again
    os.seteuid(0)
    os.seteuid(NOBODY)
    say("helpers", len([pid for pid in helpers() if pid != found[0]]))
    again = connected()
    say("again", echoed(again, 10), echoed(s, 10))


cases = {f.__name__: f for f in (
    goes_on, comes_back, comes_back_with_rights, reaper, goes_unnoticed, unseen,
    another_helper, no_helper_wanted, killed_helper, stays, ends_full, reads_late)}
cases[case]()
