package example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.CreateMode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** What one server is enough for. */
class QueueTest {
    @RegisterExtension
    static final ZooraftExtension ZK = new ZooraftExtension();

    /** The write is done, the answer is lost, and the client tries again. */
    @Test
    void aLostAnswerMakesTwoJobsUnlessTheCreateIsProtected() throws Exception {
        try (CuratorFramework client = connect()) {
            client.create().forPath("/jobs");
            ZK.loseReply("create", "/jobs/*");
            client.create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath("/jobs/job-");
            assertEquals(2, client.getChildren().forPath("/jobs").size(), "the bug: one job was wanted");

            client.create().forPath("/safe");
            ZK.loseReply("create", "/safe/*");
            client.create().withProtection().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath("/safe/job-");
            assertEquals(1, client.getChildren().forPath("/safe").size());
        }
    }

    /** Who registers once is gone after the first session that expires. */
    @Test
    void anExpiredSessionTakesTheRegistrationWithIt() throws Exception {
        try (CuratorFramework client = connect()) {
            CountDownLatch lost = new CountDownLatch(1);
            client.getConnectionStateListenable().addListener((c, state) -> {
                if (state == ConnectionState.LOST) {
                    lost.countDown();
                }
            });
            client.create().withMode(CreateMode.EPHEMERAL).forPath("/worker");
            ZK.expireSession(client.getZookeeperClient().getZooKeeper().getSessionId());
            assertTrue(lost.await(30, TimeUnit.SECONDS));
            assertNull(client.checkExists().forPath("/worker"));
        }
    }

    private static CuratorFramework connect() {
        CuratorFramework client = CuratorFrameworkFactory.newClient(
                ZK.connectString(), 10_000, 10_000, new RetryOneTime(100));
        client.start();
        return client;
    }
}
