"""pytest fixtures: ZooKeeper-compatible servers in memory, and faults on demand.

    def test_mine(zk):                 # one server
        client = KazooClient(hosts=zk.hosts)

    @pytest.mark.zooraft(servers=3)    # three that elect a leader
    def test_ours(zk): ...

The program is found on PATH, or by the environment variable ZOORAFT. It ends
with pytest, however that ends.
"""

import json
import os
import subprocess
import urllib.error
import urllib.request

import pytest


class Zooraft:
    """Servers in a process of their own."""

    def __init__(self, folder, servers=1, flags=()):
        ports, log = folder / "ports", folder / "log"
        with open(log, "wb") as errors:
            self.process = subprocess.Popen(
                [os.environ.get("ZOORAFT", "zooraft"), "serve", "--ephemeral",
                 "--servers", str(servers), "--port-file", str(ports),
                 "--control-port", "0", "--until-stdin-ends", *flags],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        # It says one line when it serves, and nothing if it cannot.
        if not self.process.stdout.readline():
            raise RuntimeError("zooraft does not start: " + log.read_text())
        clients, control = ports.read_text().split()
        self.addresses = ["127.0.0.1:" + port for port in clients.split(",")]
        self.hosts = ",".join(self.addresses)
        self._control = "http://127.0.0.1:" + control

    def control(self, method, path, body=None):
        """Any request of the control port; GET / there lists them."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._control + path, data, {"Zooraft-Control": "1"}, method=method)
        # Not through a proxy that the environment may name.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as e:
            raise RuntimeError(f"{method} {path}: {e.code} {e.read().decode()}") from None

    def leader(self, among=()):
        """The number of the server that leads; waits for one."""
        query = "?among=" + ",".join(map(str, among)) if among else ""
        return self.control("GET", "/leader" + query)["leader"]

    def partition(self, *groups):
        """Cuts the network between groups of servers' numbers."""
        self.control("POST", "/partition", {"groups": [list(g) for g in groups]})

    def heal(self):
        self.control("POST", "/heal")

    def expire(self, client):
        """Ends a client's session as if it had been silent for too long."""
        self.control("POST", f"/sessions/{client.client_id[0]}/expire")

    def drop(self, client):
        """Breaks a client's connection; its session lives on."""
        self.control("POST", f"/sessions/{client.client_id[0]}/drop")

    def inject(self, op, path, action, **more):
        """Does an action to the next request that matches; returns its number."""
        return self.control("POST", "/faults", {"op": op, "path": path, "action": action, **more})["fault"]

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def pytest_configure(config):
    config.addinivalue_line("markers", "zooraft(servers, flags): how the fixture zk is made")


@pytest.fixture
def zk(tmp_path, request):
    mark = request.node.get_closest_marker("zooraft")
    servers = Zooraft(tmp_path, **(mark.kwargs if mark else {}))
    yield servers
    servers.stop()
