package zooraft;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.CreateMode;

/**
 * Curator's recipes on an ensemble whose leader is killed again and again. Works until its input
 * ends, prints "progress" whenever each worker has done something since the last time, and then a
 * verdict for each check.
 */
public final class Failover {
    private static final int CLIENTS = 3;
    private static final int SESSION_MILLIS = 30_000;
    private static final long PATIENCE_SECONDS = 60;
    /** So often the leader of the latches hands over by itself. */
    private static final int STEPS_PER_LEADER = 20;

    private final List<CuratorFramework> clients = new ArrayList<>();
    private final List<Thread> threads = new ArrayList<>();
    private final List<AtomicInteger> done = new ArrayList<>();
    private volatile boolean stopping;

    private final AtomicInteger inside = new AtomicInteger();
    private final AtomicInteger sections = new AtomicInteger();
    private final AtomicReference<String> lockBroken = new AtomicReference<>();
    private final AtomicReference<String> latchBroken = new AtomicReference<>();
    private final AtomicReference<String> nodeBroken = new AtomicReference<>();

    /** Guarded by the ensemble's lock. */
    private volatile int counter;

    public static void main(String[] args) throws Exception {
        new Failover().run(args[0]);
        System.exit(0);
    }

    private void run(String servers) throws Exception {
        for (int i = 0; i < CLIENTS; i++) {
            CuratorFramework client =
                    CuratorFrameworkFactory.newClient(servers, SESSION_MILLIS, 10_000, new RetryForever(50));
            client.start();
            clients.add(client);
            InterProcessMutex mutex = new InterProcessMutex(client, "/curator/lock");
            work(() -> locked(mutex));
        }
        LeaderLatch[] latches = new LeaderLatch[CLIENTS];
        for (int i = 0; i < CLIENTS; i++) {
            latches[i] = latch(i);
        }
        Random random = new Random();
        int[] led = new int[1];
        work(() -> oneLeads(latches, led));
        work(() -> change(random));
        PersistentNode node =
                new PersistentNode(clients.get(2), CreateMode.EPHEMERAL, false, "/curator/node", bytes("mine"));
        node.start();
        work(this::comesBack);
        clients.get(0).create().orSetData().creatingParentsIfNeeded().forPath("/curator/cached", bytes("root"));
        CuratorCache cache = CuratorCache.build(clients.get(1), "/curator/cached");
        cache.start();
        for (Thread thread : threads) {
            thread.start();
        }
        Thread teller = new Thread(this::tell);
        teller.start();
        while (System.in.read() >= 0) {}
        stopping = true;
        teller.join();
        for (Thread thread : threads) {
            thread.join(TimeUnit.SECONDS.toMillis(PATIENCE_SECONDS));
        }
        verdict("the lock is held by one at a time", () -> {
            assertEquals(null, lockBroken.get());
            assertEquals(sections.get(), counter);
        });
        verdict("latches have exactly one leader", () -> {
            assertEquals(null, latchBroken.get());
            CuratorChecks.becomesEqual(1, () -> leaders(latches).size());
        });
        verdict("a cache equals a full walk", () -> {
            Map<String, String> walked = new TreeMap<>();
            CuratorChecks.walk(clients.get(0), "/curator/cached", walked);
            assertTrue(walked.size() > 1);
            CuratorChecks.becomesEqual(walked, () -> CuratorChecks.contents(cache));
        });
        verdict("a persistent node comes back", () -> {
            assertEquals(null, nodeBroken.get());
            CuratorChecks.becomesEqual("mine", () -> text(clients.get(0).getData().forPath("/curator/node")));
        });
    }

    private void work(Callable<Boolean> step) {
        AtomicInteger count = new AtomicInteger();
        done.add(count);
        threads.add(new Thread(() -> {
            while (!stopping) {
                try {
                    if (step.call()) {
                        count.incrementAndGet();
                    }
                } catch (Exception e) {
                    // Without a leader a recipe may give up: its user tries again.
                    System.err.println(e);
                }
            }
        }));
        threads.get(threads.size() - 1).setDaemon(true);
    }

    private void tell() {
        int[] last = new int[done.size()];
        try {
            while (!stopping) {
                boolean all = true;
                for (int i = 0; i < last.length; i++) {
                    all &= done.get(i).get() > last[i];
                }
                if (all) {
                    System.out.println("progress");
                    for (int i = 0; i < last.length; i++) {
                        last[i] = done.get(i).get();
                    }
                }
                TimeUnit.MILLISECONDS.sleep(20);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private boolean locked(InterProcessMutex mutex) throws Exception {
        mutex.acquire();
        try {
            int holders = inside.incrementAndGet();
            if (holders != 1) {
                lockBroken.compareAndSet(null, holders + " held it at once");
            }
            int before = counter;
            TimeUnit.MILLISECONDS.sleep(1);
            counter = before + 1;
            sections.incrementAndGet();
            inside.decrementAndGet();
        } finally {
            mutex.release();
        }
        return true;
    }

    private LeaderLatch latch(int client) throws Exception {
        LeaderLatch latch = new LeaderLatch(clients.get(client), "/curator/latch", "client " + client);
        latch.start();
        return latch;
    }

    private static List<Integer> leaders(LeaderLatch[] latches) {
        List<Integer> leading = new ArrayList<>();
        for (int i = 0; i < latches.length; i++) {
            if (latches[i].hasLeadership()) {
                leading.add(i);
            }
        }
        return leading;
    }

    /** Two that lead, of which the first still leads afterwards, lead at the same time. */
    private boolean oneLeads(LeaderLatch[] latches, int[] led) throws Exception {
        TimeUnit.MILLISECONDS.sleep(5);
        List<Integer> leading = leaders(latches);
        if (leading.size() > 1 && latches[leading.get(0)].hasLeadership()) {
            latchBroken.compareAndSet(null, leading + " lead at once");
        }
        if (leading.isEmpty()) {
            return false;
        }
        if (++led[0] % STEPS_PER_LEADER == 0) {
            int leader = leading.get(0);
            latches[leader].close();
            latches[leader] = latch(leader);
        }
        return true;
    }

    private boolean change(Random random) throws Exception {
        String path = "/curator/cached/" + random.nextInt(6) + "/" + random.nextInt(6);
        CuratorFramework client = clients.get(0);
        if (random.nextInt(3) == 0) {
            client.delete().quietly().deletingChildrenIfNeeded().forPath(path);
        } else {
            client.create().orSetData().creatingParentsIfNeeded().forPath(path, bytes("" + random.nextInt()));
        }
        return true;
    }

    private boolean comesBack() throws Exception {
        CuratorFramework client = clients.get(0);
        client.delete().quietly().forPath("/curator/node");
        long limit = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
        while (client.checkExists().forPath("/curator/node") == null) {
            if (System.nanoTime() > limit) {
                nodeBroken.compareAndSet(null, "it was gone for " + PATIENCE_SECONDS + " s");
                return false;
            }
            TimeUnit.MILLISECONDS.sleep(5);
        }
        return true;
    }

    private interface Check {
        void run() throws Exception;
    }

    private static void verdict(String name, Check check) {
        try {
            check.run();
            System.out.println("PASS " + name);
        } catch (Exception | AssertionError e) {
            System.out.println("FAIL " + name + ": " + e.toString().replaceAll("\\s+", " "));
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
