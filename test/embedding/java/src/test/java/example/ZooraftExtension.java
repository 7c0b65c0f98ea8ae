package example;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * ZooKeeper-compatible servers in memory, and faults on demand.
 *
 * <pre>{@code
 * @RegisterExtension
 * final ZooraftExtension zk = new ZooraftExtension();   // new for each test
 * @RegisterExtension
 * static final ZooraftExtension ZK = new ZooraftExtension(3); // three, for the class
 * }</pre>
 *
 * The program is found on PATH, or by the environment variable ZOORAFT. It ends
 * with this JVM, however that ends.
 */
public final class ZooraftExtension
        implements BeforeAllCallback, AfterAllCallback, BeforeEachCallback, AfterEachCallback {
    private final int servers;
    private final List<String> flags;
    private final HttpClient http = HttpClient.newHttpClient();
    private boolean forTheClass;
    private Process process;
    private Path folder;
    private List<String> addresses;
    private String control;

    public ZooraftExtension() {
        this(1);
    }

    /** flags are more flags of `zooraft serve`, for instance --manual-clock. */
    public ZooraftExtension(int servers, String... flags) {
        this.servers = servers;
        this.flags = List.of(flags);
    }

    /** What a client connects with: host:port, of several servers with commas. */
    public String connectString() {
        return String.join(",", addresses);
    }

    /** The address of one server. Of one alone the number is 0, else they count from 1. */
    public String address(int server) {
        return addresses.get(Math.max(0, server - 1));
    }

    /** The number of the server that leads; waits for one. among: of these only. */
    public int leader(int... among) {
        String query = among.length == 0 ? "" : "?among=" + join(among);
        return Integer.parseInt(field(control("GET", "/leader" + query, ""), "leader"));
    }

    /** Cuts the network between groups of servers. Clients reach each of them. */
    public void partition(int[]... groups) {
        List<String> lists = new ArrayList<>();
        for (int[] group : groups) {
            lists.add("[" + join(group) + "]");
        }
        control("POST", "/partition", "{\"groups\": [" + String.join(",", lists) + "]}");
    }

    public void heal() {
        control("POST", "/heal", "");
    }

    /** Ends a session as if its client had been silent for too long. */
    public void expireSession(long id) {
        control("POST", "/sessions/" + id + "/expire", "");
    }

    /** Breaks a session's connection; the session lives on. */
    public void dropConnection(long id) {
        control("POST", "/sessions/" + id + "/drop", "");
    }

    /** Does the next matching write and loses the answer. A path may end in *. */
    public void loseReply(String op, String path) {
        control("POST", "/faults", "{\"op\": \"" + op + "\", \"path\": \"" + path + "\", \"action\": \"loseReply\"}");
    }

    /** Any request of the control port: `GET /` there lists them. */
    public String control(String method, String path, String json) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(control + path))
                .header("Zooraft-Control", "1")
                .method(method, HttpRequest.BodyPublishers.ofString(json))
                .build();
        try {
            HttpResponse<String> answer = http.send(request, HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() != 200) {
                throw new IllegalStateException(method + " " + path + ": " + answer.statusCode() + " " + answer.body());
            }
            return answer.body();
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(method + " " + path, e);
        }
    }

    @Override
    public void beforeAll(ExtensionContext context) throws IOException {
        forTheClass = true;
        start();
    }

    @Override
    public void beforeEach(ExtensionContext context) throws IOException {
        if (process == null) {
            start();
        }
    }

    @Override
    public void afterEach(ExtensionContext context) throws Exception {
        if (!forTheClass) {
            stop();
        }
    }

    @Override
    public void afterAll(ExtensionContext context) throws Exception {
        stop();
    }

    private void start() throws IOException {
        folder = Files.createTempDirectory("zooraft");
        Path ports = folder.resolve("ports");
        Path log = folder.resolve("log");
        List<String> command = new ArrayList<>(List.of(
                System.getenv().getOrDefault("ZOORAFT", "zooraft"), "serve", "--ephemeral",
                "--servers", String.valueOf(servers), "--port-file", ports.toString(),
                "--control-port", "0", "--until-stdin-ends"));
        command.addAll(flags);
        process = new ProcessBuilder(command).redirectError(log.toFile()).start();
        // It says one line when it serves, and nothing if it cannot.
        if (new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8)).readLine() == null) {
            throw new IOException("zooraft does not start:\n" + Files.readString(log));
        }
        List<String> lines = Files.readAllLines(ports);
        addresses = Pattern.compile(",").splitAsStream(lines.get(0))
                .map(port -> "127.0.0.1:" + port).collect(Collectors.toList());
        control = "http://127.0.0.1:" + lines.get(1);
    }

    private void stop() throws Exception {
        if (process == null) {
            return;
        }
        process.getOutputStream().close();
        process.waitFor();
        process = null;
        for (String name : List.of("ports", "log")) {
            Files.deleteIfExists(folder.resolve(name));
        }
        Files.delete(folder);
    }

    private static String join(int[] numbers) {
        return IntStream.of(numbers).mapToObj(String::valueOf).collect(Collectors.joining(","));
    }

    private static String field(String json, String name) {
        Matcher m = Pattern.compile("\"" + name + "\":\\s*\"?([^\",}]*)").matcher(json);
        if (!m.find()) {
            throw new IllegalStateException("no " + name + " in " + json);
        }
        return m.group(1);
    }
}
