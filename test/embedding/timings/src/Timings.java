import example.ZooraftExtension;
import java.util.concurrent.CountDownLatch;
import org.apache.curator.test.TestingCluster;
import org.apache.curator.test.TestingServer;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/**
 * Prints how long each kind of server takes, in this JVM and by turns, from the
 * call that starts it until a client that the same code made has written a node:
 * "kind milliseconds" for each start. The first of each kind finds a cold JVM.
 */
public final class Timings {
    private interface Kind {
        /** Starts servers and returns what a client connects with. */
        String start() throws Exception;

        void stop() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        write(new Ours(1)); // the client's classes are loaded before anybody's time counts
        for (int round = 0; round < rounds; round++) {
            print("curator-1", write(new Curator(1)));
            print("zooraft-1", write(new Ours(1)));
            print("curator-3", write(new Curator(3)));
            print("zooraft-3", write(new Ours(3)));
        }
        System.exit(0); // Curator's servers leave threads
    }

    private static void print(String kind, double millis) {
        System.out.printf("timing %s %.1f%n", kind, millis);
    }

    private static double write(Kind kind) throws Exception {
        long begun = System.nanoTime();
        String hosts = kind.start();
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper client = new ZooKeeper(hosts, 30_000, event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                connected.countDown();
            }
        });
        connected.await();
        client.create("/a", new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        double millis = (System.nanoTime() - begun) / 1e6;
        client.close();
        kind.stop();
        return millis;
    }

    private static final class Ours implements Kind {
        private final ZooraftExtension servers;

        Ours(int n) {
            servers = new ZooraftExtension(n);
        }

        @Override
        public String start() throws Exception {
            servers.beforeEach(null);
            return servers.connectString();
        }

        @Override
        public void stop() throws Exception {
            servers.afterEach(null);
        }
    }

    private static final class Curator implements Kind {
        private final int n;
        private TestingServer one;
        private TestingCluster several;

        Curator(int n) {
            this.n = n;
        }

        @Override
        public String start() throws Exception {
            if (n == 1) {
                one = new TestingServer();
                return one.getConnectString();
            }
            several = new TestingCluster(n);
            several.start();
            return several.getConnectString();
        }

        @Override
        public void stop() throws Exception {
            if (n == 1) {
                one.close();
            } else {
                several.close();
            }
        }
    }
}
