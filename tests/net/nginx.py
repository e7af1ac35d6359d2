#!/usr/bin/env python3
"""nginx behind noria-proxy: wrk, and a checksum of 1 GiB."""
import hashlib
import http.client
import os
import re
import subprocess
import sys

import harness
from harness import Process, Proxy, check, closing, equal, until

CONFIGURATION = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 2048; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  keepalive_requests 1000000;
  sendfile on;
  server {{
    listen 127.0.0.1:{port};
    root {folder}/www;
  }}
}}
"""


class Nginx(Process):
    def __init__(self, folder):
        self.address = ("127.0.0.1", harness.free_port())
        self.www = os.path.join(folder, "www")
        os.makedirs(self.www, exist_ok=True)
        os.chmod(folder, 0o755)  # its worker may be another user
        path = os.path.join(folder, "nginx.conf")
        with open(path, "w", encoding="ascii") as file:
            file.write(CONFIGURATION.format(folder=folder, port=self.address[1]))
        super().__init__(["nginx", "-e", os.path.join(folder, "error.log"), "-c", path], stderr=subprocess.DEVNULL)
        try:
            until(lambda: harness.answers(self.address), "nginx")
        except AssertionError:
            self.kill()
            raise

    def kill(self):
        if self.child.poll() is None:
            self.child.terminate()  # the master takes its workers with it
        self.child.wait(harness.REACH)


def run_wrk(proxy, path, connections, seconds=4):
    url = "http://%s:%d/%s" % (*proxy.address, path)
    result = subprocess.run(["wrk", "-t2", f"-c{connections}", f"-d{seconds}s", url], capture_output=True, text=True,
                            timeout=harness.SECONDS_EACH, check=False)
    check("Socket errors" not in result.stdout and "Non-2xx" not in result.stdout, result.stdout + result.stderr)
    requests = int(re.search(r"(\d+) requests in", result.stdout).group(1))
    check(requests > 100, result.stdout)
    print(re.search(r"Requests/sec:.*", result.stdout).group())


def Nginx_wrk_smallFileWithoutAnError():
    with harness.folder() as folder, closing(Nginx(folder)) as nginx, closing(Proxy(nginx.address)) as proxy:
        with open(os.path.join(nginx.www, "small"), "wb") as file:
            file.write(b"x" * 1000)
        run_wrk(proxy, "small", 100)
        report = proxy.stop()
    equal(report["connections"]["failed"], failed_by_wrk(report), "failed")


def Nginx_wrk_largeFileWithoutAnError():
    with harness.folder() as folder, closing(Nginx(folder)) as nginx, closing(Proxy(nginx.address)) as proxy:
        with open(os.path.join(nginx.www, "large"), "wb") as file:
            file.write(os.urandom(1 << 20))
        run_wrk(proxy, "large", 32)
        report = proxy.stop()
    equal(report["connections"]["failed"], failed_by_wrk(report), "failed")


def failed_by_wrk(report):
    """At its end wrk closes connections with answers under way, which resets them."""
    return harness.failures(report, "copy", "ECONNRESET") + harness.failures(report, "copy", "EPIPE")


def Nginx_oneGibibyte_arrivesAsItWasSent():
    size = 1 << 30
    with harness.folder() as folder, closing(Nginx(folder)) as nginx, closing(Proxy(nginx.address)) as proxy:
        sent = hashlib.blake2b()
        block = os.urandom((32 << 20) + 13)  # no multiple of a page or a pipe
        with open(os.path.join(nginx.www, "file"), "wb") as file:
            left = size
            while left > 0:
                part = block[:left]
                file.write(part)
                sent.update(part)
                left -= len(part)
        client = http.client.HTTPConnection(*proxy.address, timeout=harness.REACH)
        client.request("GET", "/file")
        answer = client.getresponse()
        equal((answer.status, int(answer.headers["Content-Length"])), (200, size), "answer")
        received = hashlib.blake2b()
        buffer = bytearray(1 << 20)
        while True:
            count = answer.readinto(buffer)
            if count == 0:
                break
            received.update(memoryview(buffer)[:count])
        client.close()
        equal(received.hexdigest(), sent.hexdigest(), "checksum")
        report = proxy.stop()
    check(report["bytes"]["to_client"] > size, "bytes counted")
    equal(report["failures"], [], "failures")


def Nginx_severalClients_eachFileIsIntact():
    """Different files at once: a byte of another connection would show."""
    with harness.folder() as folder, closing(Nginx(folder)) as nginx, closing(Proxy(nginx.address)) as proxy:
        sums = []
        for number in range(8):
            data = os.urandom((4 << 20) + number)
            sums.append(hashlib.blake2b(data).hexdigest())
            with open(os.path.join(nginx.www, str(number)), "wb") as file:
                file.write(data)
        clients = [http.client.HTTPConnection(*proxy.address, timeout=harness.REACH) for _ in range(8)]
        for _ in range(3):
            for number, client in enumerate(clients):
                client.request("GET", f"/{number}")
            for number, client in enumerate(clients):
                equal(hashlib.blake2b(client.getresponse().read()).hexdigest(), sums[number], f"file {number}")
        for client in clients:
            client.close()
        proxy.stop()


if __name__ == "__main__":
    harness.need("nginx", "wrk")
    sys.exit(harness.main(globals()))
