import static org.apache.zookeeper.ZooDefs.Ids.OPEN_ACL_UNSAFE;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooKeeper;

/** A queue, first in first out: nodes element%010d whose data is an int of four bytes. */
public final class ProducerConsumer {
    private static final int ELEMENTS = 200;
    private static final int CONSUMERS = 3;
    private static final String ROOT = "/fifo";

    private ProducerConsumer() {}

    static String produce(ZooKeeper zk, int value) throws Exception {
        byte[] data = ByteBuffer.allocate(Integer.BYTES).putInt(value).array();
        return zk.create(ROOT + "/element", data, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL);
    }

    /** Takes the lowest element, waiting for one. */
    static int consume(ZooKeeper zk) throws Exception {
        while (true) {
            CountDownLatch changed = new CountDownLatch(1);
            List<String> names = zk.getChildren(ROOT, event -> changed.countDown());
            Collections.sort(names);
            for (String name : names) {
                try {
                    byte[] data = zk.getData(ROOT + "/" + name, false, null);
                    zk.delete(ROOT + "/" + name, 0);
                    Tutorial.same(data.length, Integer.BYTES, "the payload's length");
                    return ByteBuffer.wrap(data).getInt();
                } catch (KeeperException.NoNodeException e) {
                    // Another consumer was faster.
                }
            }
            Tutorial.check(changed.await(Tutorial.LIMIT_SECONDS, TimeUnit.SECONDS), "a new element");
        }
    }

    public static void main(String[] args) throws Exception {
        ExecutorService threads = Executors.newCachedThreadPool();
        try (ZooKeeper zk = Tutorial.connect(args[0])) {
            zk.create(ROOT, null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            Future<?> producer = threads.submit(() -> {
                try (ZooKeeper own = Tutorial.connect(args[0])) {
                    for (int i = 0; i < ELEMENTS; i++) {
                        Tutorial.same(produce(own, i), String.format("%s/element%010d", ROOT, i), "the element's name");
                    }
                }
                return null;
            });
            List<Integer> alone = new ArrayList<>();
            for (int i = 0; i < ELEMENTS; i++) {
                alone.add(consume(zk));
            }
            producer.get(Tutorial.LIMIT_SECONDS, TimeUnit.SECONDS);
            for (int i = 0; i < ELEMENTS; i++) {
                Tutorial.same(alone.get(i), i, "first in, first out");
            }
            List<Future<List<Integer>>> consumers = new ArrayList<>();
            for (int c = 0; c < CONSUMERS; c++) {
                consumers.add(threads.submit(() -> {
                    List<Integer> taken = new ArrayList<>();
                    try (ZooKeeper own = Tutorial.connect(args[0])) {
                        // Each stops at a negative element, of which there is one for each.
                        for (int value = consume(own); value >= 0; value = consume(own)) {
                            taken.add(value);
                        }
                    }
                    return taken;
                }));
            }
            for (int i = 0; i < ELEMENTS; i++) {
                produce(zk, i);
            }
            for (int c = 0; c < CONSUMERS; c++) {
                produce(zk, -1);
            }
            List<Integer> all = new ArrayList<>();
            for (Future<List<Integer>> consumer : consumers) {
                all.addAll(consumer.get(Tutorial.LIMIT_SECONDS, TimeUnit.SECONDS));
            }
            Collections.sort(all);
            Tutorial.same(all.size(), ELEMENTS, "elements taken, each once");
            for (int i = 0; i < ELEMENTS; i++) {
                Tutorial.same(all.get(i), i, "every element");
            }
        } finally {
            threads.shutdownNow();
        }
    }
}
