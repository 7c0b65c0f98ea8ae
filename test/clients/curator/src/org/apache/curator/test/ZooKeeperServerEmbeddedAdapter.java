package org.apache.curator.test;

import java.io.File;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.server.embedded.ZooKeeperServerEmbedded;
import org.apache.zookeeper.server.quorum.QuorumPeerConfig;
import org.opentest4j.TestAbortedException;

/**
 * Stands in front of the class of the same name in Curator's test library, which every test of
 * Curator starts its server through. Without the property zooraft.program it starts Apache's
 * server inside this process, as the original does; with it, that program as a process.
 *
 * <p>A test that asks for what the suite waits with is aborted here, on both servers alike, with a
 * message that begins with "waits for".
 */
public class ZooKeeperServerEmbeddedAdapter implements ZooKeeperMainFace {
    private static final long START_LIMIT_MILLIS = 60_000;
    private static final String CONNECTION_FACTORY = "zookeeper.serverCnxnFactory";

    private ZooKeeperServerEmbedded apache;
    private Process zooraft;
    private int port;

    @Override
    public void start(QuorumPeerConfigBuilder builder) {
        try {
            start(builder.buildProperties());
        } catch (TestAbortedException | FailedServerStartException e) {
            throw e;
        } catch (Exception e) {
            throw new FailedServerStartException(e);
        }
    }

    private void start(Properties properties) throws Exception {
        boolean alone = properties.stringPropertyNames().stream().noneMatch(name -> name.startsWith("server."));
        if (System.getProperty(CONNECTION_FACTORY) != null) {
            throw new TestAbortedException("waits for a class of its own inside Apache's server");
        }
        port = Integer.parseInt(properties.getProperty("clientPort"));
        if (port == 0) {
            port = freePort();
            properties.setProperty("clientPort", Integer.toString(port));
        }
        // A test enables it in a static field.
        properties.setProperty("reconfigEnabled", Boolean.toString(QuorumPeerConfig.isReconfigEnabled()));
        properties.setProperty("admin.enableServer", "false");
        properties.setProperty("4lw.commands.whitelist", "*");
        String program = System.getProperty("zooraft.program");
        if (program == null) {
            Path data = Path.of(properties.getProperty("dataDir"));
            apache = ZooKeeperServerEmbedded.builder()
                    .configuration(properties)
                    .baseDir(data.getParent())
                    .build();
            apache.start(START_LIMIT_MILLIS);
        } else {
            startZooraft(program, properties, alone);
        }
    }

    private void startZooraft(String program, Properties properties, boolean alone) throws Exception {
        File config = File.createTempFile("zoo", ".cfg");
        List<String> lines = new ArrayList<>();
        for (String name : properties.stringPropertyNames()) {
            lines.add(name + "=" + properties.getProperty(name));
        }
        Files.write(config.toPath(), lines);
        List<String> command = new ArrayList<>(List.of(program, "serve", config.getPath()));
        // A test sets Apache's system properties in this process, where Apache's server would see
        // them.
        for (Map.Entry<Object, Object> entry : System.getProperties().entrySet()) {
            String name = entry.getKey().toString();
            if (name.startsWith("zookeeper.") || name.startsWith("znode.") || name.equals("readonlymode.enabled")) {
                command.add("-D" + name + "=" + entry.getValue());
            }
        }
        File log = new File(config.getPath() + ".log");
        zooraft = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(log)
                .start();
        // Servers of an ensemble are started one after the other: the first cannot serve before the
        // next is there, and Apache's start does not wait for that either.
        String answer = alone ? "Mode: " : "";
        long limit = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(START_LIMIT_MILLIS);
        while (!answers(port, answer)) {
            if (!zooraft.isAlive() || System.nanoTime() > limit) {
                zooraft.destroyForcibly();
                throw new IOException("zooraft did not start: " + Files.readString(log.toPath()));
            }
            TimeUnit.MILLISECONDS.sleep(5);
        }
    }

    /** Tells whether the server's answer to the word srvr holds a text. */
    private static boolean answers(int port, String text) {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress("127.0.0.1", port), 1000);
            socket.getOutputStream().write("srvr".getBytes(StandardCharsets.US_ASCII));
            byte[] reply = socket.getInputStream().readAllBytes();
            return reply.length > 0 && new String(reply, StandardCharsets.US_ASCII).contains(text);
        } catch (IOException e) {
            return false;
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    @Override
    public int getClientPort() {
        return port;
    }

    @Override
    public void kill() {
        if (zooraft != null) {
            zooraft.destroyForcibly();
        }
        close();
    }

    @Override
    public void close() {
        if (apache != null) {
            apache.close();
        }
        if (zooraft != null) {
            zooraft.destroy();
            zooraft.onExit().join();
        }
    }
}
