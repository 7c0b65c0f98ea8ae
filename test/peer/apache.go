package peer

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zooraft/zooraft/test/toolchain"
)

// ApacheVersion is the version of the real server.
const ApacheVersion = "3.9.5"

// Class names of the real server's programs, which its jars carry without
// the usual shell scripts.
const (
	ApacheServerClass = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
	ApacheShellClass  = "org.apache.zookeeper.ZooKeeperMain"
)

// logback is the logging set-up of every JVM that the suites start: all to
// standard error, so that standard output is the program's own.
const logback = `<configuration>
  <appender name="CONSOLE" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target>
    <encoder><pattern>%d{ISO8601} [myid:%X{myid}] - %-5p [%t:%C{1}@%L] - %m%n</pattern></encoder>
  </appender>
  <root level="${zookeeper.log.level:-INFO}"><appender-ref ref="CONSOLE"/></root>
</configuration>
`

// ApacheClasspath fetches the real server's jars once per repository and
// returns a class path for java -cp. It skips the test when Java or Maven is
// missing.
func ApacheClasspath(tb testing.TB) string {
	tb.Helper()
	return toolchain.ClassPath(tb, filepath.Join(toolchain.Root(), "test", "peer", "pom.xml"))
}

// StartApache starts the real server and returns when it serves, unless
// opts.NoWait is set. Its HTTP admin server is off unless opts.Config or
// opts.Defines turns it on.
func StartApache(tb testing.TB, opts Options) *Server {
	tb.Helper()
	cp := ApacheClasspath(tb)
	s := newServer(tb, "apache", opts)
	args := []string{
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xmx512m",
		"-Djava.net.preferIPv4Stack=true",
	}
	args = append(args, opts.JVMArgs...)
	defines := map[string]string{
		"zookeeper.admin.enableServer": "false",
		"logback.configurationFile":    s.writeFile("logback.xml", logback),
	}
	if opts.Jaas != "" {
		defines["java.security.auth.login.config"] = s.writeFile("jaas.conf", opts.Jaas)
	}
	args = append(args, defineArgs(defines, opts.Defines)...)
	args = append(args, "-cp", cp, ApacheServerClass, s.ConfigFile)
	s.command = append([]string{"java"}, args...)
	s.Start(tb)
	return s
}

// defineArgs merges maps of Java properties, later ones winning, into sorted
// -Dname=value arguments. Names are Java's: most begin with "zookeeper.".
func defineArgs(maps ...map[string]string) []string {
	all := map[string]string{}
	for _, m := range maps {
		for k, v := range m {
			all[k] = v
		}
	}
	var args []string
	for k, v := range all {
		args = append(args, fmt.Sprintf("-D%s=%s", k, v))
	}
	slices.Sort(args)
	return args
}
