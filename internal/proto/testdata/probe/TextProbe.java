import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import org.apache.jute.BinaryInputArchive;
import org.apache.zookeeper.common.PathUtils;

/**
 * Reads a file of strings in hex, one a line, has the real server's classes
 * decode each and judge it as a path, and prints the string, what it was
 * decoded to (UTF-8 in hex), and 1 for a valid path or 0.
 */
public class TextProbe {
    public static void main(String[] args) throws Exception {
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            byte[] raw = HexFormat.of().parseHex(line.substring(1));
            ByteArrayOutputStream record = new ByteArrayOutputStream();
            DataOutputStream out = new DataOutputStream(record);
            out.writeInt(raw.length);
            out.write(raw);
            String text = BinaryInputArchive.getArchive(new ByteArrayInputStream(record.toByteArray())).readString("text");
            int valid = 1;
            try {
                PathUtils.validatePath(text);
            } catch (IllegalArgumentException e) {
                valid = 0;
            }
            System.out.println("=" + line.substring(1) + " =" + HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8)) + " " + valid);
        }
    }
}
