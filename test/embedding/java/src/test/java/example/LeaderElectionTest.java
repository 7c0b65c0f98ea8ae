package example;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.retry.RetryOneTime;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Somebody's service elects a leader; at no moment may two of them think that they lead. */
class LeaderElectionTest {
    @RegisterExtension
    final ZooraftExtension zk = new ZooraftExtension(3);

    @Test
    void thePartitionedLeaderStepsDownBeforeAnotherTakesOver() throws Exception {
        int cutOff = zk.leader();
        int[] rest = IntStream.rangeClosed(1, 3).filter(id -> id != cutOff).toArray();
        List<String> course = new CopyOnWriteArrayList<>();
        CountDownLatch oneLeads = new CountDownLatch(1);
        CountDownLatch twoLeads = new CountDownLatch(1);
        try (CuratorFramework a = connect(zk.address(cutOff));
                CuratorFramework b = connect(zk.address(rest[0]) + "," + zk.address(rest[1]));
                LeaderLatch one = candidate(a, "one", course, oneLeads);
                LeaderLatch two = candidate(b, "two", course, twoLeads)) {
            one.start();
            assertTrue(oneLeads.await(30, TimeUnit.SECONDS));
            two.start();

            zk.partition(new int[] {cutOff}, rest);

            assertTrue(twoLeads.await(60, TimeUnit.SECONDS), "nobody takes over");
            zk.heal();
            int leaders = 0;
            for (String step : course) {
                leaders += step.endsWith("leads") ? 1 : -1;
                assertTrue(leaders <= 1, "two lead at a time: " + course);
            }
        }
    }

    private static CuratorFramework connect(String address) {
        CuratorFramework client = CuratorFrameworkFactory.newClient(address, 6000, 6000, new RetryOneTime(100));
        client.start();
        return client;
    }

    private static LeaderLatch candidate(CuratorFramework client, String name, List<String> course, CountDownLatch leads) {
        LeaderLatch latch = new LeaderLatch(client, "/election", name, LeaderLatch.CloseMode.SILENT);
        latch.addListener(new LeaderLatchListener() {
            @Override
            public void isLeader() {
                course.add(name + " leads");
                leads.countDown();
            }

            @Override
            public void notLeader() {
                course.add(name + " stops");
            }
        });
        return latch;
    }
}
