import static org.apache.zookeeper.ZooDefs.Ids.OPEN_ACL_UNSAFE;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooKeeper;

/** A synchronising queue: nobody starts until all are there and the last has made /queue/start. */
public final class SyncQueue {
    private static final int SIZE = 4;
    private static final String START = "/queue/start";

    private SyncQueue() {}

    private static int join(String address, int number, AtomicInteger joined) throws Exception {
        try (ZooKeeper zk = Tutorial.connect(address)) {
            CountDownLatch started = new CountDownLatch(1);
            // The watch comes before the joining, so that the start cannot be missed.
            if (zk.exists(START, event -> started.countDown()) != null) {
                started.countDown();
            }
            joined.incrementAndGet();
            zk.create("/queue/member-" + number, null, OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
            long members = zk.getChildren("/queue", false).stream().filter(name -> name.startsWith("member-")).count();
            if (members == SIZE) {
                try {
                    zk.create(START, null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
                } catch (KeeperException.NodeExistsException e) {
                    // Two saw the full queue at once.
                }
            }
            Tutorial.check(started.await(Tutorial.LIMIT_SECONDS, TimeUnit.SECONDS), "the start");
            return joined.get();
        }
    }

    public static void main(String[] args) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(SIZE);
        AtomicInteger joined = new AtomicInteger();
        try (ZooKeeper zk = Tutorial.connect(args[0])) {
            zk.create("/queue", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            List<Future<Integer>> members = new ArrayList<>();
            for (int i = 0; i < SIZE - 1; i++) {
                int number = i;
                members.add(threads.submit(() -> join(args[0], number, joined)));
            }
            while (zk.getChildren("/queue", false).size() < SIZE - 1) {
                Thread.onSpinWait();
            }
            Tutorial.same(zk.exists(START, false), null, "no start before the queue is full");
            members.add(threads.submit(() -> join(args[0], SIZE - 1, joined)));
            for (Future<Integer> member : members) {
                Tutorial.same(member.get(Tutorial.LIMIT_SECONDS, TimeUnit.SECONDS), SIZE, "members at a member's start");
            }
        } finally {
            threads.shutdownNow();
        }
    }
}
