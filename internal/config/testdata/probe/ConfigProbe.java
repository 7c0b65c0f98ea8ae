import java.io.FileInputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.zookeeper.server.quorum.QuorumPeerConfig;

/**
 * Reads configuration files with the real server's parser and prints what it
 * made of each, one line per fact: file, tab, kind, tab, name, tab, value, the
 * last two as hexadecimal UTF-8.
 */
public class ConfigProbe {
    public static void main(String[] files) throws Exception {
        Properties before = (Properties) System.getProperties().clone();
        for (String file : files) {
            System.setProperties((Properties) before.clone());
            properties(file);
            parse(file);
            for (Map.Entry<Object, Object> entry : new TreeMap<>(System.getProperties()).entrySet()) {
                if (!before.containsKey(entry.getKey())) {
                    print(file, "system", entry.getKey(), entry.getValue());
                }
            }
        }
    }

    private static void properties(String file) {
        Properties read = new Properties();
        try (FileInputStream in = new FileInputStream(file)) {
            read.load(in);
        } catch (Exception e) {
            print(file, "malformed", "", e);
            return;
        }
        for (Map.Entry<Object, Object> entry : read.entrySet()) {
            print(file, "property", entry.getKey().toString().trim(), entry.getValue().toString().trim());
        }
    }

    private static void parse(String file) {
        QuorumPeerConfig.setStandaloneEnabled(true);
        QuorumPeerConfig.setReconfigEnabled(false);
        QuorumPeerConfig config = new QuorumPeerConfig();
        try {
            config.parse(file);
        } catch (Exception e) {
            Throwable cause = e.getCause() == null ? e : e.getCause();
            print(file, "refused", "", cause);
            return;
        }
        InetSocketAddress client = config.getClientPortAddress();
        print(file, "value", "clientPort", client == null ? "" : client.getPort());
        print(file, "value", "dataDir", config.getDataDir());
        print(file, "value", "dataLogDir", config.getDataLogDir());
        print(file, "value", "tickTime", config.getTickTime());
        print(file, "value", "maxClientCnxns", config.getMaxClientCnxns());
        print(file, "value", "minSessionTimeout", config.getMinSessionTimeout());
        print(file, "value", "maxSessionTimeout", config.getMaxSessionTimeout());
        print(file, "value", "autopurge.snapRetainCount", config.getSnapRetainCount());
        print(file, "value", "distributed", config.isDistributed());
        print(file, "value", "servers", config.getServers().size());
        print(file, "value", "myid", config.getServerId());
    }

    private static void print(String file, String kind, Object name, Object value) {
        System.out.println(file + "\t" + kind + "\t" + hex(name) + "\t" + hex(value));
    }

    private static String hex(Object text) {
        StringBuilder out = new StringBuilder();
        for (byte b : String.valueOf(text).getBytes(StandardCharsets.UTF_8)) {
            out.append(String.format("%02x", b));
        }
        return out.toString();
    }
}
