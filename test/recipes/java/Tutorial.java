import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;

/** What the programs share: a session that is connected, events in order, and checks. */
final class Tutorial {
    static final int SESSION_MILLIS = 10_000;
    static final int LIMIT_SECONDS = 60;

    private Tutorial() {}

    static ZooKeeper connect(String address, Watcher watcher) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper zk = new ZooKeeper(address, SESSION_MILLIS, event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                connected.countDown();
            }
            watcher.process(event);
        });
        check(connected.await(LIMIT_SECONDS, TimeUnit.SECONDS), "a connection");
        return zk;
    }

    static ZooKeeper connect(String address) throws Exception {
        return connect(address, event -> {});
    }

    static void check(boolean holds, String what) {
        if (!holds) {
            throw new IllegalStateException("expected " + what);
        }
    }

    static void same(Object have, Object want, String what) {
        check(want == null ? have == null : want.equals(have), what + ": " + want + ", not " + have);
    }

    /** A call that may fail as ZooKeeper's calls do. */
    interface Call {
        void run() throws Exception;
    }

    static void fails(Class<? extends Exception> type, Call call) throws Exception {
        try {
            call.run();
        } catch (Exception e) {
            check(type.isInstance(e), type.getSimpleName() + ", not " + e);
            return;
        }
        check(false, type.getSimpleName() + ", not success");
    }

    /** Collects events so that a program can ask for the next one. */
    static final class Events implements Watcher {
        private final BlockingQueue<WatchedEvent> queue = new LinkedBlockingQueue<>();

        @Override
        public void process(WatchedEvent event) {
            if (event.getType() != Event.EventType.None) {
                queue.add(event);
            }
        }

        void next(Event.EventType type, String path) throws InterruptedException {
            WatchedEvent event = queue.poll(LIMIT_SECONDS, TimeUnit.SECONDS);
            check(event != null, type + " of " + path);
            same(event.getType() + " " + event.getPath(), type + " " + path, "the next event");
        }

        void none(String when) {
            check(queue.isEmpty(), "no event " + when + ", not " + queue.peek());
        }
    }
}
