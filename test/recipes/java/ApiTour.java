import static org.apache.zookeeper.ZooDefs.Ids.CREATOR_ALL_ACL;
import static org.apache.zookeeper.ZooDefs.Ids.OPEN_ACL_UNSAFE;
import static org.apache.zookeeper.ZooDefs.Ids.READ_ACL_UNSAFE;

import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.WatcherType;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/** A tour of the API with a watcher on every call that takes one. */
public final class ApiTour {
    private ApiTour() {}

    public static void main(String[] args) throws Exception {
        try (ZooKeeper zk = Tutorial.connect(args[0]); ZooKeeper other = Tutorial.connect(args[0])) {
            data(zk, other);
            children(zk, other);
            persistent(zk, other);
            kinds(zk);
            access(zk, other);
            transactions(zk);
            background(zk);
        }
    }

    private static void data(ZooKeeper zk, ZooKeeper other) throws Exception {
        Tutorial.Events seen = new Tutorial.Events();
        Tutorial.same(zk.exists("/tour", seen), null, "no node before it is made");
        Tutorial.same(zk.create("/tour", "one".getBytes(), OPEN_ACL_UNSAFE, CreateMode.PERSISTENT), "/tour", "its path");
        seen.next(EventType.NodeCreated, "/tour");
        Stat stat = new Stat();
        Tutorial.same(new String(zk.getData("/tour", seen, stat)), "one", "the data");
        Tutorial.same(stat.getVersion(), 0, "the version");
        Tutorial.same(other.setData("/tour", "two".getBytes(), 0).getVersion(), 1, "the next version");
        seen.next(EventType.NodeDataChanged, "/tour");
        Tutorial.fails(KeeperException.BadVersionException.class, () -> zk.setData("/tour", null, 0));
        zk.setData("/tour", null, 1);
        seen.none("without a watch");
        Tutorial.same(zk.getData("/tour", seen, stat), null, "no data");
        Tutorial.check(zk.exists("/tour", seen) != null, "the node");
        Tutorial.fails(KeeperException.BadVersionException.class, () -> other.delete("/tour", 9));
        other.delete("/tour", 2);
        seen.next(EventType.NodeDeleted, "/tour");
        Tutorial.fails(KeeperException.NoNodeException.class, () -> zk.getData("/tour", seen, null));
        seen.none("after the watch was used up");
    }

    private static void children(ZooKeeper zk, ZooKeeper other) throws Exception {
        Tutorial.Events seen = new Tutorial.Events();
        zk.create("/tour", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        Tutorial.same(zk.getChildren("/tour", seen).size(), 0, "children");
        other.create("/tour/b", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        seen.next(EventType.NodeChildrenChanged, "/tour");
        Stat stat = new Stat();
        Tutorial.same(zk.getChildren("/tour", seen, stat), List.of("b"), "children");
        Tutorial.same(stat.getCversion(), 1, "the children's version");
        other.setData("/tour/b", "x".getBytes(), -1);
        other.delete("/tour/b", -1);
        seen.next(EventType.NodeChildrenChanged, "/tour");
        Tutorial.same(zk.getChildren("/tour", seen).size(), 0, "children");
        other.delete("/tour", -1);
        seen.next(EventType.NodeDeleted, "/tour");
        Tutorial.fails(KeeperException.NoNodeException.class, () -> zk.getChildren("/tour", seen));
    }

    private static void persistent(ZooKeeper zk, ZooKeeper other) throws Exception {
        Tutorial.Events one = new Tutorial.Events();
        Tutorial.Events all = new Tutorial.Events();
        zk.addWatch("/tree", one, AddWatchMode.PERSISTENT);
        zk.addWatch("/tree", all, AddWatchMode.PERSISTENT_RECURSIVE);
        other.create("/tree", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        other.create("/tree/a", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        other.create("/tree/a/b", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        other.setData("/tree/a/b", null, -1);
        other.setData("/tree", null, -1);
        one.next(EventType.NodeCreated, "/tree");
        one.next(EventType.NodeChildrenChanged, "/tree");
        one.next(EventType.NodeDataChanged, "/tree");
        all.next(EventType.NodeCreated, "/tree");
        all.next(EventType.NodeCreated, "/tree/a");
        all.next(EventType.NodeCreated, "/tree/a/b");
        all.next(EventType.NodeDataChanged, "/tree/a/b");
        all.next(EventType.NodeDataChanged, "/tree");
        zk.removeWatches("/tree", one, WatcherType.Any, false);
        zk.removeAllWatches("/tree", WatcherType.Any, false);
        one.next(EventType.PersistentWatchRemoved, "/tree");
        Tutorial.fails(KeeperException.NoWatcherException.class, () -> zk.removeWatches("/tree", one, WatcherType.Any, false));
        other.delete("/tree/a/b", -1);
        other.delete("/tree/a", -1);
        other.delete("/tree", -1);
    }

    private static void kinds(ZooKeeper zk) throws Exception {
        zk.create("/kinds", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        Tutorial.same(zk.create("/kinds/s-", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL), "/kinds/s-0000000000", "the first number");
        Stat stat = new Stat();
        Tutorial.same(zk.create("/kinds/e-", null, OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL, stat), "/kinds/e-0000000001", "the second number");
        Tutorial.same(stat.getEphemeralOwner(), zk.getSessionId(), "the owner");
        Tutorial.fails(KeeperException.NoChildrenForEphemeralsException.class,
                () -> zk.create("/kinds/e-0000000001/x", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
        zk.create("/kinds/c", null, OPEN_ACL_UNSAFE, CreateMode.CONTAINER);
        zk.create("/kinds/t", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, new Stat(), 100_000);
        Tutorial.same(zk.getAllChildrenNumber("/kinds"), 4, "the number of children");
        Tutorial.same(zk.getEphemerals("/kinds"), List.of("/kinds/e-0000000001"), "the ephemeral nodes");
        Tutorial.fails(KeeperException.NotEmptyException.class, () -> zk.delete("/kinds", -1));
        Tutorial.fails(KeeperException.NodeExistsException.class,
                () -> zk.create("/kinds", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
        Tutorial.fails(KeeperException.NoNodeException.class,
                () -> zk.create("/none/x", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
    }

    private static void access(ZooKeeper zk, ZooKeeper other) throws Exception {
        zk.addAuthInfo("digest", "ann:secret".getBytes());
        zk.create("/own", "x".getBytes(), CREATOR_ALL_ACL, CreateMode.PERSISTENT);
        Stat stat = new Stat();
        Tutorial.same(zk.getACL("/own", stat).get(0).getId().getScheme(), "digest", "the scheme");
        Tutorial.fails(KeeperException.NoAuthException.class, () -> other.getData("/own", false, null));
        Tutorial.same(zk.setACL("/own", READ_ACL_UNSAFE, 0).getAversion(), 1, "the list's version");
        Tutorial.same(new String(other.getData("/own", false, null)), "x", "the data");
        Tutorial.fails(KeeperException.NoAuthException.class, () -> zk.setData("/own", null, -1));
        Tutorial.fails(KeeperException.InvalidACLException.class, () -> zk.create("/bad", null, Collections.emptyList(), CreateMode.PERSISTENT));
        Tutorial.check(zk.whoAmI().stream().anyMatch(who -> who.getUser().equals("ann")), "ann among the identities");
        other.delete("/own", -1);
    }

    private static void transactions(ZooKeeper zk) throws Exception {
        List<OpResult> results = zk.multi(List.of(
                Op.create("/multi", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT),
                Op.create("/multi/s-", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL),
                Op.setData("/multi", "x".getBytes(), 0),
                Op.check("/multi", 1)));
        Tutorial.same(((OpResult.CreateResult) results.get(1)).getPath(), "/multi/s-0000000000", "the path");
        Tutorial.fails(KeeperException.NoNodeException.class, () -> zk.multi(List.of(
                Op.delete("/multi/s-0000000000", -1), Op.delete("/multi/none", -1))));
        Tutorial.check(zk.exists("/multi/s-0000000000", false) != null, "nothing undone in part");
        List<OpResult> reads = zk.multi(List.of(Op.getData("/multi"), Op.getChildren("/multi"), Op.getData("/multi/none")));
        Tutorial.same(new String(((OpResult.GetDataResult) reads.get(0)).getData()), "x", "the data");
        Tutorial.same(((OpResult.GetChildrenResult) reads.get(1)).getChildren(), List.of("s-0000000000"), "the children");
        Tutorial.same(((OpResult.ErrorResult) reads.get(2)).getErr(), KeeperException.Code.NONODE.intValue(), "the error");
        zk.transaction().delete("/multi/s-0000000000", -1).delete("/multi", -1).commit();
        Tutorial.same(zk.exists("/multi", false), null, "no node");
    }

    private static void background(ZooKeeper zk) throws Exception {
        int writes = 200;
        CountDownLatch done = new CountDownLatch(writes + 1);
        int[] next = {0};
        for (int i = 0; i < writes; i++) {
            int number = i;
            zk.create("/late-" + i, null, OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL, (rc, path, context, name) -> {
                // Answers come in the order of the requests, or this one is not counted.
                if (rc == 0 && next[0]++ == number) {
                    done.countDown();
                }
            }, null);
        }
        zk.sync("/", (rc, path, context) -> done.countDown(), null);
        Tutorial.check(done.await(Tutorial.LIMIT_SECONDS, TimeUnit.SECONDS), "every answer in order");
    }
}
