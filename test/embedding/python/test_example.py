"""What a service that uses ZooKeeper should be tested for, with kazoo."""

import subprocess
import sys
import threading

import pytest
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import BadVersionError
from kazoo.exceptions import ConnectionClosedError, ConnectionLoss, SessionExpiredError

LIMIT = 60  # seconds that bound what must happen at all


@pytest.fixture
def connect():
    """Connects clients that are stopped after the test."""
    clients = []

    def new(hosts, **options):
        client = KazooClient(hosts=hosts, **options)
        clients.append(client)
        client.start(timeout=LIMIT)
        return client

    yield new
    for client in clients:
        client.stop()
        client.close()


def test_an_expired_session_takes_the_registration_with_it(zk, connect):
    client, lost = connect(zk.hosts), threading.Event()
    client.add_listener(lambda state: lost.set() if state == KazooState.LOST else None)
    client.create("/worker", ephemeral=True)
    zk.expire(client)
    assert lost.wait(LIMIT)
    zk.control("POST", "/wait", {"node": "/worker", "absent": True})


def test_a_broken_connection_keeps_the_lock(zk, connect):
    client, suspended, again = connect(zk.hosts), threading.Event(), threading.Event()
    client.create("/lock", ephemeral=True)

    def listener(state):
        if state == KazooState.SUSPENDED:
            suspended.set()
        elif suspended.is_set() and state == KazooState.CONNECTED:
            again.set()

    client.add_listener(listener)
    zk.drop(client)
    assert again.wait(LIMIT)
    assert client.exists("/lock")


def test_a_lost_answer_leaves_the_write_done(zk, connect):
    client = connect(zk.hosts)
    client.create("/jobs")
    zk.inject("create", "/jobs/*", "loseReply")
    with pytest.raises(ConnectionLoss):
        client.create("/jobs/job-", sequence=True)
    # Who tries again now has two jobs.
    assert len(client.retry(client.get_children, "/jobs")) == 1


def test_somebody_writes_between_reading_and_writing(zk, connect):
    slow, quick = connect(zk.hosts), connect(zk.hosts)
    slow.create("/counter", b"1")
    held = zk.inject("setData", "/counter", "hold", session=str(slow.client_id[0]))
    _, stat = slow.get("/counter")
    write = slow.set_async("/counter", b"2", version=stat.version)
    zk.control("GET", f"/faults/{held}?waitMillis={LIMIT * 1000}")
    quick.set("/counter", b"7")
    zk.control("DELETE", f"/faults/{held}")
    with pytest.raises(BadVersionError):
        write.get(timeout=LIMIT)


@pytest.mark.zooraft(servers=3)
def test_a_leader_that_is_cut_off_confirms_nothing(zk, connect):
    old = zk.leader()
    rest = [n for n in (1, 2, 3) if n != old]
    outside = connect(zk.addresses[old - 1])
    inside = connect(",".join(zk.addresses[n - 1] for n in rest))
    zk.partition([old], rest)
    assert zk.leader(among=rest) != old
    inside.retry(inside.create, "/of-the-majority")
    with pytest.raises((ConnectionLoss, ConnectionClosedError, SessionExpiredError)):
        outside.create("/of-the-minority")
    zk.heal()
    zk.control("POST", "/wait", {"server": old, "node": "/of-the-majority"})
    assert inside.exists("/of-the-minority") is None


DIES = """
import os, sys
from kazoo.client import KazooClient
client = KazooClient(hosts=sys.argv[1], timeout=40)
client.start()
client.create("/lock", ephemeral=True)
os._exit(0)  # as a process that is killed: nothing is closed
"""


@pytest.mark.zooraft(flags=["--manual-clock"])
def test_a_dead_client_s_lock_goes_when_its_session_s_time_is_up(zk, connect):
    client = connect(zk.hosts)
    subprocess.run([sys.executable, "-c", DIES, zk.hosts], check=True)
    zk.control("POST", "/clock", {"advanceMillis": 39_000})
    assert client.exists("/lock")
    zk.control("POST", "/clock", {"advanceMillis": 2_000})
    assert not client.exists("/lock")
