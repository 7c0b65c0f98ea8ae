import static org.apache.zookeeper.ZooDefs.Ids.OPEN_ACL_UNSAFE;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;

/**
 * Configuration: workers follow the settings through watches and end with the last. Naming: servers
 * take unique numbers, register under them, and vanish from the list when they go.
 */
public final class ConfigurationAndNaming {
    private static final int WORKERS = 3;
    private static final int CHANGES = 50;

    private ConfigurationAndNaming() {}

    /** Follows /config/settings; every value that it sees is newer than the one before. */
    private static final class Worker implements Watcher {
        final ZooKeeper zk;
        final BlockingQueue<Integer> seen = new LinkedBlockingQueue<>();

        Worker(String address) throws Exception {
            zk = Tutorial.connect(address);
            read();
        }

        private void read() throws Exception {
            seen.add(Integer.parseInt(new String(zk.getData("/config/settings", this, null))));
        }

        @Override
        public void process(WatchedEvent event) {
            if (event.getType() != Event.EventType.NodeDataChanged) {
                return;
            }
            try {
                read();
            } catch (KeeperException.ConnectionLossException | KeeperException.SessionExpiredException e) {
                // The program has ended.
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        configuration(args[0]);
        naming(args[0]);
    }

    private static void configuration(String address) throws Exception {
        List<Worker> workers = new ArrayList<>();
        try (ZooKeeper zk = Tutorial.connect(address)) {
            zk.create("/config", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            zk.create("/config/settings", "0".getBytes(), OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            for (int i = 0; i < WORKERS; i++) {
                workers.add(new Worker(address));
            }
            for (int i = 1; i <= CHANGES; i++) {
                Tutorial.same(zk.setData("/config/settings", Integer.toString(i).getBytes(), i - 1).getVersion(), i, "the version");
            }
            for (Worker worker : workers) {
                int last = -1;
                while (last < CHANGES) {
                    Integer value = worker.seen.poll(Tutorial.LIMIT_SECONDS, TimeUnit.SECONDS);
                    Tutorial.check(value != null, "the last change at every worker, not " + last);
                    Tutorial.check(value > last, "a newer value than " + last + ", not " + value);
                    last = value;
                }
            }
        } finally {
            for (Worker worker : workers) {
                worker.zk.close();
            }
        }
    }

    private static void naming(String address) throws Exception {
        List<ZooKeeper> servers = new ArrayList<>();
        Set<String> names = new HashSet<>();
        try (ZooKeeper zk = Tutorial.connect(address)) {
            zk.create("/names", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            for (int i = 0; i < 5; i++) {
                ZooKeeper server = Tutorial.connect(address);
                servers.add(server);
                names.add(server.create("/names/server-", ("host" + i).getBytes(), OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL)
                        .substring("/names/".length()));
            }
            Tutorial.same(names.size(), 5, "names, each once");
            Tutorial.Events changes = new Tutorial.Events();
            Tutorial.same(new HashSet<>(zk.getChildren("/names", changes)), names, "the list of names");
            for (int i = 0; i < 5; i++) {
                String name = String.format("server-%010d", i);
                Tutorial.same(new String(zk.getData("/names/" + name, false, null)), "host" + i, "who has the name");
                servers.get(i).close();
                changes.next(Watcher.Event.EventType.NodeChildrenChanged, "/names");
                names.remove(name);
                Tutorial.same(new HashSet<>(zk.getChildren("/names", changes)), names, "the list of names");
            }
            String again = zk.create("/names/server-", null, OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL);
            Tutorial.same(again, "/names/server-0000000005", "a name is never given twice");
        } finally {
            for (ZooKeeper server : servers) {
                server.close();
            }
        }
    }
}
