package zooraft;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs the JUnit classes named on its input, one a line, of which "Class#one,two" names only some
 * methods, and writes a line for each test: status,
 * class, test and detail, between tabs. A line "end" follows each class.
 */
public final class Runner {
    private static final PrintStream OUT = new PrintStream(new FileOutputStream(FileDescriptor.out), true);

    private Runner() {}

    public static void main(String[] args) throws Exception {
        // Whatever the tests print must not look like a verdict.
        System.setOut(System.err);
        BufferedReader names = new BufferedReader(new InputStreamReader(System.in));
        Launcher launcher = LauncherFactory.create();
        for (String line = names.readLine(); line != null; line = names.readLine()) {
            String name = line.split("#")[0];
            try {
                launcher.execute(
                        LauncherDiscoveryRequestBuilder.request()
                                .selectors(selectClass(name))
                                .filters(onlyMethods(line))
                                .configurationParameter("junit.jupiter.execution.timeout.default", "120 s")
                                .build(),
                        new Listener(name));
            } catch (RuntimeException e) {
                // The class cannot be loaded.
                OUT.println(String.join("\t", "failed", name, "(the class)", describe(e).replaceAll("\\s+", " ")));
            }
            OUT.println("end");
        }
        System.exit(0);
    }

    private static PostDiscoveryFilter onlyMethods(String line) {
        int from = line.indexOf('#');
        List<String> wanted = from < 0 ? null : List.of(line.substring(from + 1).split(","));
        return test -> FilterResult.includedIf(wanted == null
                || test.getSource()
                        .filter(MethodSource.class::isInstance)
                        .map(source -> wanted.contains(((MethodSource) source).getMethodName()))
                        .orElse(true));
    }

    private static final class Listener implements TestExecutionListener {
        private final String type;

        /** Repetitions and parameters share a name: the n-th is told apart by its number. */
        private final Map<String, Integer> seen = new TreeMap<>();

        Listener(String type) {
            this.type = type;
        }

        @Override
        public void executionSkipped(TestIdentifier test, String reason) {
            write("skipped", test, reason);
        }

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            String detail = result.getThrowable().map(Runner::describe).orElse("");
            switch (result.getStatus()) {
                case SUCCESSFUL:
                    if (test.isTest()) {
                        write("passed", test, detail);
                    }
                    break;
                case ABORTED:
                    write(result.getThrowable().map(Throwable::getMessage).orElse("").startsWith("waits for")
                                    ? "waiting"
                                    : "skipped",
                            test,
                            result.getThrowable().map(Throwable::getMessage).orElse(""));
                    break;
                default:
                    write("failed", test, detail);
            }
        }

        private void write(String status, TestIdentifier test, String detail) {
            String name = test.getSource()
                    .filter(MethodSource.class::isInstance)
                    .map(source -> ((MethodSource) source).getMethodName())
                    .orElse(test.getDisplayName());
            int count = seen.merge(name, 1, Integer::sum);
            if (count > 1) {
                name += "#" + count;
            }
            OUT.println(String.join("\t", status, type, name, detail.replaceAll("\\s+", " ")));
        }
    }

    private static String describe(Throwable cause) {
        StringWriter text = new StringWriter();
        cause.printStackTrace(new PrintWriter(text));
        return text.toString().lines().limit(12).reduce("", (a, b) -> a + " | " + b);
    }
}
