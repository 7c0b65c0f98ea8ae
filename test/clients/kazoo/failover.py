"""kazoo's recipes on an ensemble whose leader is killed again and again.

Works until its input ends, prints "progress" whenever each worker has done
something since the last time, and then a verdict for each check.
"""

import random
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

PATIENCE = 60
stopping = threading.Event()
broken = []
inside = 0
counter = 0
sections = 0


def connect():
    retry = dict(max_tries=-1, max_delay=0.5)
    client = KazooClient(
        sys.argv[1], timeout=30, connection_retry=retry, command_retry=retry
    )
    client.start(timeout=PATIENCE)
    return client


clients = [connect() for _ in range(3)]
clients[0].ensure_path("/kazoo/children")


def locked(client):
    def step():
        global inside, counter, sections
        with client.Lock("/kazoo/lock"):
            inside += 1
            if inside != 1:
                broken.append("%d held it at once" % inside)
            before = counter
            time.sleep(0.001)
            counter = before + 1
            sections += 1
            inside -= 1

    return step


def change():
    client = clients[1]
    path = "/kazoo/children/%d" % random.randrange(20)
    try:
        if random.random() < 0.6:
            client.retry(client.create, path, b"x")
        else:
            client.retry(client.delete, path)
    except (NodeExistsError, NoNodeError):
        pass


def repeat(step, done, index):
    while not stopping.is_set():
        try:
            step()
            done[index] += 1
        except (KazooException, KazooTimeoutError) as e:
            print(repr(e), file=sys.stderr)


seen = {}


@clients[2].ChildrenWatch("/kazoo/children")
def watch(children):
    seen["children"] = sorted(children)


def verdict(name, wrong):
    print("FAIL %s: %s" % (name, wrong) if wrong else "PASS " + name, flush=True)


def tell(done):
    last = list(done)
    while not stopping.is_set():
        now = list(done)
        if all(n > l for n, l in zip(now, last)):
            print("progress", flush=True)
            last = now
        time.sleep(0.02)


def main():
    steps = [locked(client) for client in clients] + [change]
    done = [0] * len(steps)
    threads = [
        threading.Thread(target=repeat, args=(step, done, i), daemon=True)
        for i, step in enumerate(steps)
    ]
    threads.append(threading.Thread(target=tell, args=(done,), daemon=True))
    for thread in threads:
        thread.start()
    sys.stdin.read()
    stopping.set()
    for thread in threads:
        thread.join(PATIENCE)
    wrong = broken[0] if broken else ""
    if counter != sections:
        wrong = "%d sections counted to %d" % (sections, counter)
    verdict("the lock is held by one at a time", wrong)
    late = time.time() + PATIENCE
    while True:
        there = sorted(clients[0].retry(clients[0].get_children, "/kazoo/children"))
        if there == seen["children"] or time.time() > late:
            break
        time.sleep(0.02)
    verdict(
        "a children watch ends with what is there",
        "" if there == seen["children"] else "%s, saw %s" % (there, seen["children"]),
    )
    for client in clients:
        client.stop()


main()
