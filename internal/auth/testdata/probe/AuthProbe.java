import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import org.apache.zookeeper.server.auth.DigestAuthenticationProvider;

/**
 * Reads a file of credentials in hex, one a line, and prints each with the
 * algorithm in force and the identity that the real server makes of it.
 */
public class AuthProbe {
    public static void main(String[] args) throws Exception {
        String algorithm = System.getProperty(DigestAuthenticationProvider.DIGEST_ALGORITHM_KEY);
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            String text = new String(HexFormat.of().parseHex(line.substring(1)), StandardCharsets.UTF_8);
            String identity = DigestAuthenticationProvider.generateDigest(text);
            System.out.println(algorithm + " " + line + " ="
                + HexFormat.of().formatHex(identity.getBytes(StandardCharsets.UTF_8)));
        }
    }
}
