"""What the tests of noria-proxy share: the proxy, servers behind it, and a runner.

A test is a function whose name is Subject_condition_result. Every server listens on a free loopback port, keeps its
data in a folder of the test, and is stopped by its process id. Whatever hangs ends with the watchdog."""
import contextlib
import faulthandler
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

SECONDS_EACH = 90  # of one test
REACH = 30         # seconds that anything awaited may take; generous, only to end what hangs

PROXY = None  # path of the program, from the command line


def check(condition, message):
    if not condition:
        raise AssertionError(message)


def equal(found, expected, what):
    check(found == expected, f"{what}: {found!r}, expected {expected!r}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def connect(address, timeout=REACH):
    return socket.create_connection(address, timeout=timeout)


def receive(sock, size):
    """Exactly `size` bytes; fewer only at the end of stream."""
    parts = []
    while size > 0:
        part = sock.recv(min(size, 1 << 20))
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def receive_all(sock):
    return receive(sock, 1 << 62)


def reset(sock):
    """Closes with a reset instead of an end of stream."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    sock.close()


def until(condition, what, seconds=REACH / 3):
    """Waits for what another process does and cannot announce."""
    end = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < end, f"{what}: not within {seconds} s")
        time.sleep(0.01)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Process:
    """A child that is stopped by its own id."""

    def __init__(self, command, **options):
        self.child = subprocess.Popen(command, **options)
        self.pid = self.child.pid

    def kill(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait(REACH)


class Proxy(Process):
    """noria-proxy in front of `upstreams`; stop() ends it with a signal and gives its JSON report."""

    def __init__(self, *upstreams, options=(), descriptors=None):
        prefix = ["prlimit", f"--nofile={descriptors}:{descriptors}", "--"] if descriptors else []
        names = ",".join(f"{host}:{port}" for host, port in upstreams)
        command = [*prefix, PROXY, "--listen", "127.0.0.1:0", "--upstream", names, "--json", *options]
        super().__init__(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.log = []
        self.listening = threading.Event()
        self.address = None
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()
        if not self.listening.wait(REACH) or self.address is None:
            self.kill()
            raise AssertionError("the proxy did not start:\n" + "".join(self.log))

    def read_log(self):
        for line in self.child.stderr:
            self.log.append(line)
            found = re.search(r"listening on 127\.0\.0\.1:(\d+)", line)
            if found:
                self.address = ("127.0.0.1", int(found.group(1)))
                self.listening.set()
        self.listening.set()

    def logged(self, text):
        return any(text in line for line in self.log)

    def signal(self, number=signal.SIGTERM):
        os.kill(self.pid, number)

    def wait(self):
        """The end of a proxy that was told to end."""
        out = self.child.stdout.read()
        code = self.child.wait(REACH)
        self.reader.join(REACH)
        equal(code, 0, "exit code of the proxy; its log:\n" + "".join(self.log[-20:]) + "code")
        return json.loads(out)

    def stop(self):
        self.signal()
        return self.wait()


def failures(report, phase, error):
    return sum(f["count"] for f in report["failures"] if (f["phase"], f["error"]) == (phase, error))


class Upstream:
    """A server of this process: `serve(socket)` runs in a thread for each connection."""

    def __init__(self, serve):
        self.serve = serve
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.address = self.listener.getsockname()
        self.accepted = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self.run, args=(sock,), daemon=True).start()

    def run(self, sock):
        with sock, contextlib.suppress(OSError):
            self.serve(sock)

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def echo(sock):
    while True:
        data = sock.recv(1 << 16)
        if not data:
            return
        sock.sendall(data)


class EchoServer:
    """An echo server for thousands of connections: one thread, epoll."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.listener.setblocking(False)
        self.address = self.listener.getsockname()
        self.poll = select.epoll()
        self.poll.register(self.listener, select.EPOLLIN)
        self.socks = {}
        self.most = 0
        self.ended = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended:
            for fd, _ in self.poll.poll(0.2):
                if fd == self.listener.fileno():
                    self.accept()
                else:
                    self.answer(fd)

    def accept(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                sock, _ = self.listener.accept()
                self.socks[sock.fileno()] = sock
                self.poll.register(sock, select.EPOLLIN)
                self.most = max(self.most, len(self.socks))

    def answer(self, fd):
        sock = self.socks[fd]
        try:
            data = sock.recv(1 << 16)
            if data:
                sock.sendall(data)
                return
        except OSError:
            pass
        del self.socks[fd]
        sock.close()

    def close(self):
        self.ended = True
        self.thread.join(REACH)
        self.poll.close()
        self.listener.close()
        for sock in self.socks.values():
            sock.close()


@contextlib.contextmanager
def folder():
    path = tempfile.mkdtemp(prefix="noria-net-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def closing(*things):
    """The things, closed or killed in the end, the last first."""
    try:
        yield things[0] if len(things) == 1 else things
    finally:
        for thing in reversed(things):
            (getattr(thing, "kill", None) or thing.close)()


def answers(address):
    with contextlib.suppress(OSError), connect(address, 1):
        return True
    return False


def refuses(address):
    try:
        connect(address, 1).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        pass
    return False


def need(*programs):
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        print("not installed:", " ".join(missing))
        sys.exit(77)


def watchdog(name):
    print(f"{name}: still running after {SECONDS_EACH} s", flush=True)
    faulthandler.dump_traceback(all_threads=True)
    for child in subprocess.run(["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, text=True,
                                check=False).stdout.split():
        with contextlib.suppress(OSError):
            os.kill(int(child), signal.SIGKILL)
    os._exit(1)


def main(module):
    """Runs every test of the module; arguments: the proxy's path, then names of tests to run alone."""
    global PROXY
    PROXY = os.path.abspath(sys.argv[1])
    chosen = sys.argv[2:]
    tests = [(name, test) for name, test in module.items()
             if callable(test) and re.fullmatch(r"[A-Z]\w*_\w+_\w+", name) and (not chosen or name in chosen)]
    failed = 0
    for name, test in tests:
        timer = threading.Timer(SECONDS_EACH, watchdog, [name])
        timer.daemon = True
        timer.start()
        began = time.monotonic()
        try:
            test()
            verdict = "passed"
        except Exception:
            traceback.print_exc()
            verdict = "FAILED"
            failed += 1
        timer.cancel()
        print(f"{verdict} {name} {time.monotonic() - began:.2f} s", flush=True)
    print(f"{len(tests) - failed} of {len(tests)} passed")
    sys.exit(1 if failed or not tests else 0)
