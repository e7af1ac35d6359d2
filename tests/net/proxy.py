#!/usr/bin/env python3
"""noria-proxy against peers of this process: ends, resets, silence, limits, drain."""
import contextlib
import os
import re
import resource
import signal
import socket
import threading
import time

import harness
from harness import EchoServer, Proxy, Upstream, check, closing, connect, echo, equal, failures, receive, until


def echoes(address):
    with contextlib.suppress(OSError), connect(address) as client:
        client.sendall(b"x")
        return receive(client, 1) == b"x"
    return False


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def Proxy_echo_bytesComeBackAndAreCounted():
    data = os.urandom(300_000)
    with closing(Upstream(echo)) as upstream, closing(Proxy(upstream.address)) as proxy:
        with connect(proxy.address) as client:
            threading.Thread(target=client.sendall, args=(data,), daemon=True).start()
            equal(receive(client, len(data)) == data, True, "what came back")
        report = proxy.stop()
    equal(report["connections"]["accepted"], 1, "accepted")
    equal(report["bytes"], {"to_upstream": len(data), "to_client": len(data)}, "bytes")
    equal((report["connections"]["failed"], report["failures"], report["drained"]), (0, [], True), "failures")


def Proxy_halfClose_isPassedOnBothWays():
    """Each side sends only after it has seen the other's end of stream."""
    def after_the_end(sock):
        got = harness.receive_all(sock)
        sock.sendall(b"you said " + got)

    with closing(Upstream(after_the_end)) as upstream, closing(Proxy(upstream.address)) as proxy:
        with connect(proxy.address) as client:
            client.sendall(b"hello")
            client.shutdown(socket.SHUT_WR)
            equal(harness.receive_all(client), b"you said hello", "after the half-close")
        report = proxy.stop()
    equal(report["connections"]["failed"], 0, "failed")


def Proxy_severalUpstreams_takesThemInTurn():
    servers = [Upstream(echo) for _ in range(3)]
    with closing(*servers), closing(Proxy(*(s.address for s in servers))) as proxy:
        for _ in range(9):
            with connect(proxy.address) as client:
                client.sendall(b"x")
                equal(receive(client, 1), b"x", "echo")
        report = proxy.stop()
    equal([u["connections"] for u in report["upstreams"]], [3, 3, 3], "connections of each upstream")


def Proxy_upstreamRefuses_theNextIsTaken():
    with closing(Upstream(echo)) as upstream:
        nobody = ("127.0.0.1", harness.free_port())
        with closing(Proxy(nobody, upstream.address)) as proxy:
            for _ in range(4):
                with connect(proxy.address) as client:
                    client.sendall(b"x")
                    equal(receive(client, 1), b"x", "echo")
            report = proxy.stop()
    equal(report["connections"]["failed"], 0, "failed")
    equal(failures(report, "connect", "ECONNREFUSED"), 2, "refusals counted")


def Proxy_allUpstreamsRefuse_costsTheConnectionOnly():
    nobody = ("127.0.0.1", harness.free_port())
    with closing(Proxy(nobody)) as proxy:
        for _ in range(3):
            with connect(proxy.address) as client:
                equal(receive(client, 1), b"", "end of stream")
        until(lambda: proxy.logged("ECONNREFUSED"), "the failure in the log")
        report = proxy.stop()
    equal((report["connections"]["accepted"], report["connections"]["failed"]), (3, 3), "accepted and failed")
    equal(failures(report, "connect", "ECONNREFUSED"), 3, "refusals counted")


def Proxy_stormOfFailures_theReasonOfEachIsLogged():
    """More of them in a second than the log takes whole: what is left out is told by reason, the last second's too."""
    nobody, storm = ("127.0.0.1", harness.free_port()), 200
    with closing(Proxy(nobody)) as proxy:
        for _ in range(storm):
            with connect(proxy.address) as client:
                equal(receive(client, 1), b"", "end of stream")
        report = proxy.stop()
    equal(failures(report, "connect", "ECONNREFUSED"), storm, "refusals counted")
    whole = sum("-> " in line and "connect: ECONNREFUSED" in line for line in proxy.log)
    found = [re.search(r"\((\d+) more: connect: ECONNREFUSED\)", line) for line in proxy.log]
    equal(whole + sum(int(each.group(1)) for each in found if each), storm, "refusals in the log")


def Proxy_upstreamDoesNotAnswerConnect_timesOut():
    """A listener whose backlog is full drops what comes: the connect stays unanswered."""
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    waiting = []
    for _ in range(3):
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(full.getsockname())
        waiting.append(sock)
    with closing(Proxy(full.getsockname(), options=["--connect-timeout", "300ms"])) as proxy:
        with connect(proxy.address) as client:
            equal(receive(client, 1), b"", "end of stream")
        report = proxy.stop()
    for sock in [full, *waiting]:
        sock.close()
    equal(failures(report, "connect", "ETIMEDOUT"), 1, "time-outs counted")


def Proxy_upstreamSilent_endsByIdleTimeout():
    silent = threading.Event()
    with closing(Upstream(lambda sock: silent.wait(harness.REACH))) as upstream:
        with closing(Proxy(upstream.address, options=["--idle-timeout", "300ms"])) as proxy:
            began = time.monotonic()
            with connect(proxy.address) as client:
                client.sendall(b"anybody there?")
                with contextlib.suppress(ConnectionResetError):
                    equal(receive(client, 1), b"", "end of stream")
                check(time.monotonic() - began >= 0.3, "ended before the time-out")
            report = proxy.stop()
    silent.set()
    equal(failures(report, "copy", "ETIMEDOUT"), 1, "time-outs counted")
    equal(report["bytes"]["to_upstream"], 14, "bytes that had been passed on")


def Proxy_trafficInOneDirection_keepsTheConnection():
    """Idle means that nothing moves either way: a long answer to a short question is not idle."""
    def drip(sock):
        for _ in range(12):
            sock.sendall(b".")
            time.sleep(0.1)

    with closing(Upstream(drip)) as upstream:
        with closing(Proxy(upstream.address, options=["--idle-timeout", "600ms"])) as proxy:
            with connect(proxy.address) as client:
                equal(harness.receive_all(client), b"." * 12, "all of the answer")
            report = proxy.stop()
    equal(report["failures"], [], "failures")


def Proxy_clientReset_endsTheConnectionOnly():
    ended = threading.Event()

    def flood(sock):
        try:
            while True:
                sock.sendall(b"x" * 65536)
        finally:
            ended.set()

    with closing(Upstream(flood)) as upstream, closing(Proxy(upstream.address)) as proxy:
        client = connect(proxy.address)
        receive(client, 1_000_000)
        harness.reset(client)
        check(ended.wait(harness.REACH), "the upstream never learnt that the client is gone")
        with connect(proxy.address) as other:
            equal(len(receive(other, 1000)), 1000, "the next connection")
            harness.reset(other)
        until(lambda: len([line for line in proxy.log if "copy:" in line]) >= 2, "two failures in the log")
        report = proxy.stop()
    equal(report["connections"]["failed"], 2, "failed")
    equal(failures(report, "copy", "ECONNRESET") + failures(report, "copy", "EPIPE"), 2, "resets counted")


def Proxy_upstreamReset_endsTheConnectionOnly():
    def bite(sock):
        sock.recv(100)
        harness.reset(sock)

    with closing(Upstream(bite)) as upstream, closing(Proxy(upstream.address)) as proxy:
        for _ in range(3):
            with connect(proxy.address) as client:
                client.sendall(b"hello")
                with contextlib.suppress(ConnectionResetError):
                    equal(receive(client, 1), b"", "end of stream")
        report = proxy.stop()
    equal(failures(report, "copy", "ECONNRESET"), 3, "resets counted")


def Proxy_twoThousandConnections_allAreServedAtOnce():
    count = 2000
    wanted = count * 6 + 100
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < wanted:
        print(f"left out: the descriptor limit {hard} is below {wanted}")
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with closing(EchoServer()) as upstream, closing(Proxy(upstream.address)) as proxy:
        clients = [connect(proxy.address) for _ in range(count)]
        for round_number in range(2):
            for number, client in enumerate(clients):
                client.sendall(b"%8d" % (number + round_number))
            for number, client in enumerate(clients):
                equal(receive(client, 8), b"%8d" % (number + round_number), f"echo of connection {number}")
        equal(upstream.most, count, "connections at the upstream at once")
        for client in clients:
            client.close()
        report = proxy.stop()
    equal(report["connections"], {"accepted": count, "failed": 0, "cut": 0, "most": count}, "connections")


def Proxy_upstreamByName_isLookedUp():
    with closing(Upstream(echo)) as upstream:
        by_name, unknown = ("localhost", upstream.address[1]), ("no-such-host.invalid", 80)
        with closing(Proxy(by_name, unknown, options=["--connect-timeout", "20s"])) as proxy:
            for _ in range(2):
                check(echoes(proxy.address), "no echo")
            report = proxy.stop()
    equal([u["connections"] for u in report["upstreams"]], [2, 0], "connections of each upstream")
    equal(failures(report, "connect", "ERESOLVE"), 1, "names that were not found")


def Proxy_slowReader_holdsTheSenderBack():
    """What a client does not read stays with the upstream, not in the proxy's memory."""
    sent = [0]

    def flood(sock):
        data = b"x" * 65536
        while sent[0] < 1 << 30:
            sent[0] += sock.send(data)

    with closing(Upstream(flood)) as upstream, closing(Proxy(upstream.address)) as proxy:
        with connect(proxy.address) as client:
            before = resident_bytes(proxy.pid)
            receive(client, 1000)
            last = [-1]

            def stands_still():
                moved, last[0] = sent[0] != last[0], sent[0]
                time.sleep(0.2)
                return not moved

            until(stands_still, "the sender's standstill")
            check(sent[0] < 64 << 20, f"{sent[0]} bytes were taken from the upstream")
            grown = resident_bytes(proxy.pid) - before
            check(grown < 8 << 20, f"the proxy grew by {grown} bytes")
            harness.reset(client)
        proxy.stop()


def Proxy_manyShortConnections_leaveNothingBehind():
    def talk():
        for _ in range(250):
            if not echoes(proxy.address):
                failed.append(1)

    failed = []
    with closing(EchoServer()) as upstream, closing(Proxy(upstream.address)) as proxy:
        check(echoes(proxy.address), "no echo")
        until(lambda: not upstream.socks, "the first connection's end")
        before = descriptors(proxy.pid)
        threads = [threading.Thread(target=talk) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(harness.REACH)
        equal(len(failed), 0, "echoes that failed")
        until(lambda: descriptors(proxy.pid) <= before, "the descriptors of what has ended", 3)
        report = proxy.stop()
    equal((report["connections"]["accepted"], report["connections"]["failed"]), (2001, 0), "accepted, failed")


def Proxy_maxConnections_theRestWaitInTheBacklog():
    with closing(EchoServer()) as upstream:
        with closing(Proxy(upstream.address, options=["--max-connections", "2"])) as proxy:
            clients = [connect(proxy.address) for _ in range(5)]
            for client in clients:
                client.sendall(b"x")
            for client in clients[:2]:
                equal(receive(client, 1), b"x", "the first two")
            clients[2].settimeout(0.3)
            with contextlib.suppress(TimeoutError):
                check(not receive(clients[2], 1), "the third was served while two were open")
            clients[2].settimeout(harness.REACH)
            equal(upstream.most, 2, "connections at the upstream")
            for index in range(2, 5):
                clients[index - 2].close()
                equal(receive(clients[index], 1), b"x", "who waited")
            for client in clients[3:]:
                client.close()
            report = proxy.stop()
    equal((report["connections"]["accepted"], report["connections"]["most"]), (5, 2), "accepted, at once")


def at_descriptor_limit(descriptors):
    """Goes to the limit and back; how often the listener rested."""
    with closing(EchoServer()) as upstream:
        options = ["--max-connections", "1000"]
        with closing(Proxy(upstream.address, options=options, descriptors=descriptors)) as proxy:
            clients = [connect(proxy.address) for _ in range(100)]
            used = harness.cpu_seconds(proxy.pid)
            time.sleep(1)  # measured: what it costs to be at the limit
            used = harness.cpu_seconds(proxy.pid) - used
            check(used < 0.3, f"the proxy spins at the limit: {used:.2f} s of CPU in 1 s")
            for client in clients:
                client.close()
            until(lambda: echoes(proxy.address), "an echo after the limit")
            return proxy.stop()["listener_rests"]


def Proxy_descriptorLimit_listenerRestsAndGoesOn():
    """A connection takes two descriptors or more, always an even number: with one of two limits the last one goes to an
    upstream, and the listener is who finds none."""
    rests = [at_descriptor_limit(64), at_descriptor_limit(65)]
    check(max(rests) > 0, "the listener never rested")


def Proxy_sigterm_openConnectionsEndByThemselves():
    with closing(EchoServer()) as upstream, closing(Proxy(upstream.address)) as proxy:
        with connect(proxy.address) as client:
            client.sendall(b"before")
            equal(receive(client, 6), b"before", "echo")
            proxy.signal()
            until(lambda: harness.refuses(proxy.address), "the listener's end")
            client.sendall(b"while it drains")
            equal(receive(client, 15), b"while it drains", "echo while it drains")
        report = proxy.wait()
    equal((report["drained"], report["connections"]["cut"]), (True, 0), "drained")


def Proxy_drainTimeout_cutsWhatIsLeft():
    with closing(EchoServer()) as upstream:
        with closing(Proxy(upstream.address, options=["--drain-timeout", "300ms"])) as proxy:
            with connect(proxy.address) as client:
                client.sendall(b"x")
                equal(receive(client, 1), b"x", "echo")
                report = proxy.stop()
    equal((report["drained"], report["connections"]["cut"]), (False, 1), "drained")
    equal(report["bytes"], {"to_upstream": 1, "to_client": 1}, "bytes of the connection that was cut")


def Proxy_secondSignal_endsTheDrain():
    with closing(EchoServer()) as upstream:
        with closing(Proxy(upstream.address, options=["--drain-timeout", "0"])) as proxy:
            with connect(proxy.address) as client:
                client.sendall(b"x")
                equal(receive(client, 1), b"x", "echo")
                proxy.signal(signal.SIGINT)
                until(lambda: proxy.logged("signal"), "the drain's begin")
                proxy.signal(signal.SIGINT)
                report = proxy.wait()
    equal((report["drained"], report["connections"]["cut"]), (False, 1), "drained")


def Proxy_idle_makesNoWakeUps():
    """With an open connection on which nothing moves the process sleeps: no context switch in five seconds."""
    def switches(pid):
        total = 0
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii") as file:
                lines = file.read().splitlines()
            if thread == str(pid) or lines[0].startswith("Name:\tproxy-"):  # others are a sanitizer's
                total += sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)
        return total

    with closing(EchoServer()) as upstream:
        with closing(Proxy(upstream.address, options=["--quiet", "--idle-timeout", "0", "--connect-timeout", "0"])) as proxy:
            with connect(proxy.address) as client:
                client.sendall(b"x")
                equal(receive(client, 1), b"x", "echo")
                time.sleep(1)  # what was under way ends
                before = switches(proxy.pid)
                time.sleep(5)  # measured
                equal(switches(proxy.pid) - before, 0, "context switches in 5 s")
            proxy.stop()


if __name__ == "__main__":
    harness.main(globals())
