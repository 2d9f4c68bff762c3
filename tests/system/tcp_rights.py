#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What programs do that give up their rights (tcp_rights.sh).

    tcp_rights.py CASE PEER PORT

The peer is tcp_peer, of whose service `echo` each connection asks."""
import ctypes
import errno
import fcntl
import os
import random
import signal
import socket
import struct
import subprocess
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
    say("rights", int(rights, 16) == 1 << 12 | 1 << 13 | 1 << 38 | 1 << 39, int(ambient, 16), filtered)
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
    sent = refused = 0
    # what is under way makes room for a moment
    while refused < 50:
        try:
            sent += s.send(bytes(65536))
            refused = 0
        except BlockingIOError:
            refused += 1
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


def killer():
    """What kills one process, once, by rights that we may have given up by then."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write_end)
        os.kill(int(os.read(read_end, 20)), signal.SIGKILL)
        os._exit(0)

    def kill(pid):
        os.write(write_end, b"%d" % pid)
        os.waitpid(child, 0)
        await_true(lambda: not os.path.exists(f"/proc/{pid}") or
                   status_of(pid, "State")[0].startswith("Z"))

    return kill


def killed_helper():
    """Without it what is ours stays ours, and new connections are the kernel's."""
    kill = killer()
    s = connected()
    os.seteuid(NOBODY)
    found = helpers()
    kill(found[0])
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


def drop_by_capset():
    """All of them, of root that stays root."""
    header = struct.pack("Ii", 0x20080522, 0)
    if ctypes.CDLL(None, use_errno=True).capset(header, bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


drops = {"setuid": lambda: os.setuid(NOBODY), "capset": drop_by_capset,
         "number": lambda: ctypes.CDLL(None).syscall(105, NOBODY)}


def talked_by_udp(cnt):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((os.environ.get("OWN", "0.0.0.0"), 0))
    s.connect((peer, port + 1))
    s.settimeout(5)
    good = 0
    for i in range(cnt):
        s.send(b"%d" % i)
        good += s.recv(100) == b"%d" % i
    return good


def rights_first():
    """The rights are gone before the first socket."""
    drops[os.environ["DROP"]]()
    say("rights", status_of("self", "CapEff")[0].strip("0") or "none")
    say("datagrams", talked_by_udp(400))
    s = connected()
    say("echo", echoed(s, 400))
    server = socket.create_server((os.environ["OWN"], port + 2))
    say("accepted", serve_once(server))
    pid = os.fork()
    if pid == 0:
        say("child", echoed(s, 10))
        os._exit(0)
    say("child ended", os.waitpid(pid, 0)[1])
    say("parent", echoed(s, 10))


def serve_once(server):
    """The mate in the other namespace connects when the listener is ours, as it is from the
    first accept on."""
    server.setblocking(False)
    try:
        server.accept()
    except BlockingIOError:
        server.setblocking(True)
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"connect", (peer, port + 1))
    s = server.accept()[0]
    server.close()
    good = 0
    while True:
        text = s.recv(100)
        if not text:
            return good
        s.sendall(text)
        good += 1


def mate():
    """Echoes datagrams, and connects to rights_first when one says so."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((peer, port + 1))
    say("ready")
    while True:
        text, whence = s.recvfrom(100)
        if text != b"connect":
            s.sendto(text, whence)
        elif os.fork() == 0:
            c = socket.create_connection((os.environ["OWN"], port + 2), timeout=10)
            c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            echoed(c, 400)
            os._exit(0)


def dropped_and_killed():
    """The helper is killed while an interface is open, and before one is."""
    kill = killer()
    os.setuid(NOBODY)
    if os.environ["WHEN"] == "open":
        say("datagrams", talked_by_udp(10))
    found = helpers()
    kill(found[0])
    say("datagrams", talked_by_udp(400))


def forked_later():
    """A child of a process without rights has none, and no helper either."""
    os.setuid(NOBODY)
    if os.fork() == 0:
        say("child", talked_by_udp(100))
        os._exit(0)
    os.wait()
    say("parent", talked_by_udp(100))


def worker():
    """A child that gives them up itself, as a server's worker does."""
    if os.fork() == 0:
        os.setuid(NOBODY)
        say("child", talked_by_udp(400))
        say("helpers", len(helpers()))
        os._exit(0)
    os.wait()
    say("helpers", len(helpers()))


def other_namespace():
    """The helper is of the first one; the second one is entered unseen."""
    libc = ctypes.CDLL("libc.so.6", use_errno=True)
    os.seteuid(NOBODY)
    libc.seteuid(0)
    if libc.unshare(0x40000000) != 0:  # CLONE_NEWNET
        raise OSError(ctypes.get_errno(), "unshare")
    os.system("ip link add v0 type veth peer name v1; ip address add 10.79.0.1/24 dev v0;"
              "ip link set v0 up; ip link set v1 up;"
              "ip neighbour add 10.79.0.2 dev v0 lladdr 2:0:0:0:0:9")
    libc.seteuid(NOBODY)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    say("sent", s.sendto(b"x", ("10.79.0.2", 9)))


REPAIR, XSK, ICMP, PASS, STEER, ATTACH = range(6)


class Helper:
    """vma_way_back with us as its program."""

    def __init__(self):
        self.end, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.program = subprocess.Popen([os.environ["HELPER"]], stdin=other)
        other.close()
        self.end.settimeout(20)
        self.ready = struct.unpack("i", self.end.recv(100))[0]

    def ask(self, message, fds=()):
        """The answer, and how many descriptors came with it: kept in self.fds."""
        socket.send_fds(self.end, [message], list(fds))
        text, self.fds, _, _ = socket.recv_fds(self.end, 100, 20)
        return struct.unpack("i", text)[0], len(self.fds)

    def fd_cnt(self):
        return len(os.listdir(f"/proc/{self.program.pid}/fd"))

    def settled(self):
        """How many it has when it waits for the next request."""
        await_true(lambda: status_of(self.program.pid, "State")[0].startswith("S"))
        return self.fd_cnt()

    def has_only(self, cnt):
        """Soon: it answers before it closes what it has given."""
        for _ in range(500):
            if self.fd_cnt() == cnt:
                return True
            time.sleep(0.01)
        return False


def request(op, flags=0, value=0, ifindex=0, sight=0, rules=0):
    return struct.pack("IIiiII", op, flags, value, ifindex, sight, rules)


def close_all(fds):
    for fd in fds:
        os.close(fd)


def strict():
    """What the helper does for whom, and what not."""
    helper = Helper()
    before = helper.fd_cnt()
    tcp, udp = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for name, message, fds in (
            ("repair", request(REPAIR, value=1), [tcp.fileno()]),
            ("end of repair", request(REPAIR, value=-1), [tcp.fileno()]),
            ("of no TCP socket", request(REPAIR, value=1), [udp.fileno()]),
            ("of two", request(REPAIR, value=1), [tcp.fileno()] * 2),
            ("of none", request(REPAIR, value=1), []),
            ("another value", request(REPAIR, value=2), [tcp.fileno()]),
            ("AF_XDP", request(XSK), []),
            ("with more", request(XSK, ifindex=1), []),
            ("with a descriptor", request(XSK), [tcp.fileno()]),
            ("with six", request(XSK), [tcp.fileno()] * 6),
            ("too long", request(XSK) + b"\0", []),
            ("too short", request(XSK)[:-1], []),
            ("ICMP", request(ICMP), []),
            ("no such thing", request(6), []),
            ("no interface", request(STEER, rules=4096), []),
            ("no such sight", request(STEER, ifindex=1, sight=9, rules=4096), []),
            ("too many rules", request(STEER, ifindex=1, rules=1 << 30), []),
            ("no such flag", request(STEER, 4, ifindex=1, rules=4096), [])):
        result, cnt = helper.ask(message, fds)
        say(name, errno.errorcode.get(-result, result), cnt)
        close_all(helper.fds)
    say("steering", *helper.ask(request(STEER, ifindex=1, rules=4096)))
    steering = helper.fds
    say("another program", helper.ask(request(PASS))[0])
    say("attached", *helper.ask(request(ATTACH, ifindex=1), helper.fds))
    say("no interface", helper.ask(request(ATTACH, ifindex=1 << 30), steering[:1])[0] < 0)
    say("its own", *helper.ask(request(ATTACH, ifindex=1), steering[:1]))
    close_all(steering)
    say("nothing is left", helper.has_only(before))


def any_request():
    """Whatever comes, it answers, and goes on."""
    seed = int(os.environ.get("SEED") or time.time_ns() % 1000000)
    print("seed", seed, file=sys.stderr)
    chance = random.Random(seed)
    helper = Helper()
    # by this it reads what it has opened of the kernel, and closes that
    helper.ask(request(STEER, ifindex=1, sight=1, rules=4096))
    close_all(helper.fds)
    before = helper.settled()
    things = [socket.socket().detach(), os.open("/dev/null", os.O_RDWR), *os.pipe(),
              socket.socket(socket.AF_INET, socket.SOCK_DGRAM).detach()]
    numbers = [0, 0, 0, 0, 1, 1, 2, 3, 4, 4096, 32768, 1 << 31, (1 << 32) - 1]
    for _ in range(3000):
        message = struct.pack("6I", chance.choice([0, 1, 2, 3, 4, 5, 6, 1 << 31]),
                              *(chance.choice(numbers) for _ in range(5)))
        if chance.random() < 0.1:
            message = chance.randbytes(chance.randrange(1, 60))
        fds = [chance.choice(things) for _ in range(chance.choice([0, 0, 1, 1, 2, 3, 9]))]
        result, cnt = helper.ask(message, fds)
        # what it has made may serve for the next request
        for fd in helper.fds:
            os.dup2(fd, chance.choice(things))
            os.close(fd)
        if result > 0 or (result and cnt):
            say("answered", result, cnt, message, fds)
    say("goes on", *helper.ask(request(XSK)), helper.program.poll())
    say("nothing is left", helper.has_only(before))


cases = {f.__name__: f for f in (
    rights_first, mate, dropped_and_killed, forked_later, worker, other_namespace,
    strict, any_request,
    goes_on, comes_back, comes_back_with_rights, reaper, goes_unnoticed, unseen,
    another_helper, no_helper_wanted, killed_helper, stays, ends_full, reads_late)}
cases[case]()
