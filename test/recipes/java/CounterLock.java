import static org.apache.zookeeper.ZooDefs.Ids.OPEN_ACL_UNSAFE;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooKeeper;

/** A lock of ephemeral sequential nodes: five threads add to a counter, which ends at exactly 100. */
public final class CounterLock {
    private static final int THREADS = 5;
    private static final int ADDITIONS = 20;

    private CounterLock() {}

    /** The lock: the lowest number holds it, each other waits for the one before it. */
    private static final class Lock implements AutoCloseable {
        private final ZooKeeper zk;
        private final String node;

        Lock(ZooKeeper zk) throws Exception {
            this.zk = zk;
            node = zk.create("/lock/turn-", null, OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL);
            String mine = node.substring("/lock/".length());
            while (true) {
                List<String> turns = zk.getChildren("/lock", false);
                Collections.sort(turns);
                int place = turns.indexOf(mine);
                Tutorial.check(place >= 0, "my own node among " + turns);
                if (place == 0) {
                    return;
                }
                CountDownLatch gone = new CountDownLatch(1);
                if (zk.exists("/lock/" + turns.get(place - 1), event -> gone.countDown()) != null) {
                    Tutorial.check(gone.await(Tutorial.LIMIT_SECONDS, TimeUnit.SECONDS), "my turn");
                }
            }
        }

        @Override
        public void close() throws Exception {
            zk.delete(node, -1);
        }
    }

    public static void main(String[] args) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        try (ZooKeeper zk = Tutorial.connect(args[0])) {
            zk.create("/lock", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            zk.create("/counter", "0".getBytes(), OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            List<Future<Void>> ends = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                ends.add(threads.submit(() -> {
                    try (ZooKeeper own = Tutorial.connect(args[0])) {
                        for (int n = 0; n < ADDITIONS; n++) {
                            try (Lock lock = new Lock(own)) {
                                // Without the lock this would lose additions: no version is checked.
                                int value = Integer.parseInt(new String(own.getData("/counter", false, null)));
                                own.setData("/counter", Integer.toString(value + 1).getBytes(), -1);
                            }
                        }
                    }
                    return null;
                }));
            }
            for (Future<Void> end : ends) {
                end.get(5 * Tutorial.LIMIT_SECONDS, TimeUnit.SECONDS);
            }
            Tutorial.same(new String(zk.getData("/counter", false, null)), "100", "the counter");
            Tutorial.same(zk.getChildren("/lock", false).size(), 0, "no turn left");
        } finally {
            threads.shutdownNow();
        }
    }
}
