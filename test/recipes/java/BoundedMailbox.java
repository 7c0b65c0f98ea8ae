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
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * A mailbox that never holds more than ten letters: a letter is put in together with a new version of
 * the box, so that two senders cannot both take the last place.
 */
public final class BoundedMailbox {
    private static final int CAPACITY = 10;
    private static final int SENDERS = 3;
    private static final int LETTERS = 30;
    private static final String BOX = "/mailbox";

    private BoundedMailbox() {}

    private static void send(ZooKeeper zk, String text) throws Exception {
        while (true) {
            CountDownLatch changed = new CountDownLatch(1);
            Stat stat = new Stat();
            zk.getData(BOX, false, stat);
            int letters = zk.getChildren(BOX, event -> changed.countDown()).size();
            Tutorial.check(letters <= CAPACITY, "at most " + CAPACITY + " letters, not " + letters);
            if (letters == CAPACITY) {
                Tutorial.check(changed.await(Tutorial.LIMIT_SECONDS, TimeUnit.SECONDS), "room in the box");
                continue;
            }
            try {
                zk.multi(List.of(
                        Op.setData(BOX, null, stat.getVersion()),
                        Op.create(BOX + "/letter-", text.getBytes(), OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL)));
                return;
            } catch (KeeperException.BadVersionException e) {
                // Another sender came between the count and the letter.
            }
        }
    }

    private static String receive(ZooKeeper zk) throws Exception {
        while (true) {
            CountDownLatch changed = new CountDownLatch(1);
            List<String> names = zk.getChildren(BOX, event -> changed.countDown());
            Tutorial.check(names.size() <= CAPACITY, "at most " + CAPACITY + " letters, not " + names.size());
            if (!names.isEmpty()) {
                String path = BOX + "/" + Collections.min(names);
                String text = new String(zk.getData(path, false, null));
                zk.delete(path, -1);
                return text;
            }
            Tutorial.check(changed.await(Tutorial.LIMIT_SECONDS, TimeUnit.SECONDS), "a letter");
        }
    }

    public static void main(String[] args) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(SENDERS);
        try (ZooKeeper zk = Tutorial.connect(args[0])) {
            zk.create(BOX, null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            List<Future<?>> senders = new ArrayList<>();
            for (int s = 0; s < SENDERS; s++) {
                int sender = s;
                senders.add(threads.submit(() -> {
                    try (ZooKeeper own = Tutorial.connect(args[0])) {
                        for (int i = 0; i < LETTERS; i++) {
                            send(own, sender + ":" + i);
                        }
                    }
                    return null;
                }));
            }
            while (zk.getChildren(BOX, false).size() < CAPACITY) {
                Thread.onSpinWait();
            }
            int[] next = new int[SENDERS];
            for (int i = 0; i < SENDERS * LETTERS; i++) {
                String[] letter = receive(zk).split(":");
                int sender = Integer.parseInt(letter[0]);
                Tutorial.same(Integer.parseInt(letter[1]), next[sender]++, "the sender's next letter");
            }
            for (Future<?> sender : senders) {
                sender.get(Tutorial.LIMIT_SECONDS, TimeUnit.SECONDS);
            }
            Tutorial.same(zk.getChildren(BOX, false).size(), 0, "an empty box");
        } finally {
            threads.shutdownNow();
        }
    }
}
