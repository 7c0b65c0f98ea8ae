package zooraft;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.curator.retry.RetryOneTime;
import org.apache.curator.test.BaseClassForTests;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceProvider;
import org.apache.zookeeper.KeeperException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What Curator's published tests leave out: service discovery, and a cache after a long history. */
public class CuratorChecks extends BaseClassForTests {
    private static final int CHANGES = 1000;

    private CuratorFramework client;

    @BeforeEach
    public void connect() {
        client = newClient();
    }

    @AfterEach
    public void disconnect() {
        client.close();
    }

    private CuratorFramework newClient() {
        CuratorFramework made =
                CuratorFrameworkFactory.newClient(server.getConnectString(), 10_000, 10_000, new RetryOneTime(100));
        made.start();
        return made;
    }

    /** Waits until both are equal; on a time-out the last comparison fails the test. */
    static void becomesEqual(Object want, java.util.concurrent.Callable<?> have) throws Exception {
        long limit = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        Object last = have.call();
        while (System.nanoTime() < limit && !want.equals(last)) {
            TimeUnit.MILLISECONDS.sleep(20);
            last = have.call();
        }
        assertEquals(want, last);
    }

    @Test
    public void aCacheEqualsAFullWalkAfterAThousandRandomChanges() throws Exception {
        long seed = new Random().nextLong();
        log.error("seed {}", seed);
        Random random = new Random(seed);
        client.create().forPath("/cached", new byte[0]);
        try (CuratorCache cache = CuratorCache.build(client, "/cached")) {
            CountDownLatch filled = new CountDownLatch(1);
            cache.listenable()
                    .addListener(CuratorCacheListener.builder()
                            .forInitialized(filled::countDown)
                            .build());
            cache.start();
            assertTrue(filled.await(30, TimeUnit.SECONDS));
            for (int i = 0; i < CHANGES; i++) {
                change(random, i);
            }
            Map<String, String> walked = new TreeMap<>();
            walk(client, "/cached", walked);
            assertTrue(walked.size() > 1, "seed " + seed);
            becomesEqual(walked, () -> contents(cache));
        }
    }

    private void change(Random random, int number) throws Exception {
        String path = "/cached";
        for (int depth = 1 + random.nextInt(3); depth > 0; depth--) {
            path += "/" + random.nextInt(6);
        }
        byte[] data = Integer.toString(number).getBytes(StandardCharsets.UTF_8);
        switch (random.nextInt(4)) {
            case 0:
                client.delete().quietly().deletingChildrenIfNeeded().forPath(path);
                break;
            case 1:
                if (client.checkExists().forPath(path) != null) {
                    client.setData().forPath(path, data);
                    break;
                }
            default:
                client.create().orSetData().creatingParentsIfNeeded().forPath(path, data);
        }
    }

    static void walk(CuratorFramework client, String path, Map<String, String> into) throws Exception {
        org.apache.zookeeper.data.Stat stat = new org.apache.zookeeper.data.Stat();
        byte[] data = client.getData().storingStatIn(stat).forPath(path);
        into.put(path, describe(new ChildData(path, stat, data)));
        for (String child : client.getChildren().forPath(path)) {
            walk(client, path + "/" + child, into);
        }
    }

    static Map<String, String> contents(CuratorCache cache) {
        Map<String, String> cached = new TreeMap<>();
        cache.stream().forEach(data -> cached.put(data.getPath(), describe(data)));
        return cached;
    }

    static String describe(ChildData data) {
        return new String(data.getData(), StandardCharsets.UTF_8) + " version " + data.getStat().getVersion()
                + " mzxid " + data.getStat().getMzxid();
    }

    @Test
    public void aTransactionIsAllOrNothing() throws Exception {
        List<CuratorTransactionResult> results = client.transaction()
                .forOperations(
                        client.transactionOp().create().forPath("/t", "a".getBytes()),
                        client.transactionOp().create().forPath("/t/1"),
                        client.transactionOp().setData().withVersion(0).forPath("/t", "b".getBytes()),
                        client.transactionOp().check().withVersion(1).forPath("/t"),
                        client.transactionOp().delete().forPath("/t/1"));
        assertEquals(5, results.size());
        assertArrayEquals("b".getBytes(), client.getData().forPath("/t"));
        assertThrows(KeeperException.BadVersionException.class, () -> client.transaction()
                .forOperations(
                        client.transactionOp().create().forPath("/t/2"),
                        client.transactionOp().check().withVersion(9).forPath("/t")));
        assertNull(client.checkExists().forPath("/t/2"));
    }

    @Test
    public void aTtlNodeStaysWhileItIsTouched() throws Exception {
        try (PersistentTtlNode node = new PersistentTtlNode(client, "/ttl", 10_000, "x".getBytes())) {
            node.start();
            assertTrue(node.waitForInitialCreate(30, TimeUnit.SECONDS));
            assertArrayEquals("x".getBytes(), client.getData().forPath("/ttl"));
            becomesEqual(true, () -> client.checkExists().forPath("/ttl/" + PersistentTtlNode.DEFAULT_CHILD_NODE_NAME) != null);
        }
    }

    /**
     * Every look is repeated: when the owner learns late that its client is connected, it takes that
     * for a new connection, deletes its entries and makes them again, on any server.
     */
    @Test
    public void aServiceIsFoundUntilItGoes() throws Exception {
        ServiceInstance<String> first = instance("1", 1001);
        ServiceInstance<String> second = instance("2", 1002);
        CuratorFramework other = newClient();
        try (ServiceDiscovery<String> asker = discovery(client);
                ServiceDiscovery<String> owner = discovery(other)) {
            asker.start();
            owner.start();
            owner.registerService(first);
            owner.registerService(second);
            becomesEqual(List.of("service"), () -> List.copyOf(asker.queryForNames()));
            becomesEqual(2, () -> asker.queryForInstances("service").size());
            becomesEqual(first, () -> asker.queryForInstance("service", "1"));
            try (ServiceCache<String> cache =
                            asker.serviceCacheBuilder().name("service").build();
                    ServiceProvider<String> provider =
                            asker.serviceProviderBuilder().serviceName("service").build()) {
                cache.start();
                provider.start();
                becomesEqual(2, () -> cache.getInstances().size());
                becomesEqual(true, () -> provider.getInstance() != null);
                owner.unregisterService(first);
                becomesEqual(List.of(second), () -> List.copyOf(cache.getInstances()));
                owner.unregisterService(second);
                becomesEqual(0, () -> cache.getInstances().size());
                becomesEqual(0, () -> provider.getAllInstances().size());
            }
        } finally {
            other.close();
        }
    }

    private static ServiceInstance<String> instance(String id, int port) throws Exception {
        return ServiceInstance.<String>builder()
                .name("service")
                .id(id)
                .address("127.0.0.1")
                .port(port)
                .payload("payload " + id)
                .build();
    }

    private static ServiceDiscovery<String> discovery(CuratorFramework client) {
        return ServiceDiscoveryBuilder.builder(String.class).client(client).basePath("/services").build();
    }
}
