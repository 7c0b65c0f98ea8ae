import static org.apache.zookeeper.ZooDefs.Ids.OPEN_ACL_UNSAFE;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooKeeper;

/** Leader election: who makes the ephemeral node /GroupMembers/leader leads until its session ends. */
public final class LeaderElection {
    private static final String GROUP = "/GroupMembers";
    private static final String LEADER = GROUP + "/leader";

    private LeaderElection() {}

    /** One member, with a session of its own. */
    private static final class Member {
        final String name;
        final ZooKeeper zk;
        private final BlockingQueue<Member> elected;

        Member(String address, String name, BlockingQueue<Member> elected) throws Exception {
            this.name = name;
            this.elected = elected;
            this.zk = Tutorial.connect(address);
        }

        /** Tries to lead; otherwise watches the leader and tries again when it goes. */
        void run() {
            try {
                while (true) {
                    try {
                        zk.create(LEADER, name.getBytes(), OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
                        elected.add(this);
                        return;
                    } catch (KeeperException.NodeExistsException e) {
                        if (zk.exists(LEADER, event -> run()) != null) {
                            return;
                        }
                    }
                }
            } catch (KeeperException.ConnectionLossException | KeeperException.SessionExpiredException e) {
                // This member has left.
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BlockingQueue<Member> elected = new LinkedBlockingQueue<>();
        List<Member> members = new ArrayList<>();
        try (ZooKeeper zk = Tutorial.connect(args[0])) {
            zk.create(GROUP, null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            for (int i = 0; i < 5; i++) {
                Member member = new Member(args[0], "member " + i, elected);
                members.add(member);
                member.run();
            }
            while (!members.isEmpty()) {
                Member leader = elected.poll(Tutorial.LIMIT_SECONDS, TimeUnit.SECONDS);
                Tutorial.check(leader != null, "a leader among " + members.size());
                Tutorial.same(new String(zk.getData(LEADER, false, null)), leader.name, "the node names the leader");
                Tutorial.check(elected.isEmpty(), "one leader at a time");
                members.remove(leader);
                leader.zk.close();
            }
            Tutorial.same(zk.exists(LEADER, false), null, "no leader without members");
        }
    }
}
