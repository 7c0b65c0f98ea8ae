// Command standin stands where a client's own test suite expects ZooKeeper's
// launcher: installed under the name zkServer.sh (the Go client's suite) or
// java (kazoo's), it reads the configuration the suite wrote and starts the
// server under test on it, so that the suite itself runs unmodified. It may
// change nothing else of what the suite sees, with one exception: the build
// date in the reply to srvr, see datedproxy.go.
//
// The environment says what to start:
//
//	STANDIN_SERVER     apache or zooraft
//	STANDIN_JAVA       the real java
//	STANDIN_CLASSPATH  Apache ZooKeeper's jars
//	STANDIN_LOGBACK    a logging configuration for it
//	STANDIN_ZOORAFT    the zooraft program
//	STANDIN_LOG_STORE  its log store
//	STANDIN_OLD_DATE   1: reply to srvr with a build date of ZooKeeper before 3.6
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// peerMain is Apache's server class, which a java command line ends with.
const peerMain = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

func main() {
	flags, config, ok := parse(filepath.Base(os.Args[0]), os.Args[1:], os.Getenv("SERVER_JVMFLAGS"))
	if !ok {
		// Some other use of java by the suite is none of our business.
		exec(os.Getenv("STANDIN_JAVA"), os.Args[1:])
	}
	if os.Getenv("STANDIN_OLD_DATE") == "1" {
		os.Exit(serveBehindProxy(flags, config))
	}
	program, args := command(flags, config)
	exec(program, args)
}

// parse finds the -D flags and the configuration file in a launcher's
// arguments.
func parse(name string, args []string, jvmFlags string) (flags []string, config string, ok bool) {
	if name == "zkServer.sh" {
		if len(args) != 2 || args[0] != "start-foreground" {
			return nil, "", false
		}
		return strings.Fields(jvmFlags), args[1], true
	}
	for i, arg := range args {
		if strings.HasPrefix(arg, "-D") {
			flags = append(flags, arg)
		}
		if arg == peerMain && i+1 < len(args) {
			return flags, args[i+1], true
		}
	}
	return nil, "", false
}

// command is the server under test on one configuration file.
func command(flags []string, config string) (program string, args []string) {
	switch os.Getenv("STANDIN_SERVER") {
	case "apache":
		args = []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xmx512m",
			"-Dlogback.configurationFile=" + os.Getenv("STANDIN_LOGBACK"),
			"-cp", os.Getenv("STANDIN_CLASSPATH")}
		args = append(args, flags...)
		return os.Getenv("STANDIN_JAVA"), append(args, peerMain, config)
	case "zooraft":
		// kazoo's configuration names SASL and TLS in every run. The tests that
		// use them wait; the others need the server to start.
		args = append([]string{"serve", "--allow-unprotected"}, flags...)
		args = append(args, "-Dzookeeper.raftLogStore="+os.Getenv("STANDIN_LOG_STORE"))
		return os.Getenv("STANDIN_ZOORAFT"), append(args, config)
	}
	fmt.Fprintln(os.Stderr, "standin: STANDIN_SERVER is neither apache nor zooraft")
	os.Exit(2)
	return "", nil
}

// exec becomes the program, so that a suite's signals reach the server itself.
func exec(program string, args []string) {
	err := syscall.Exec(program, append([]string{program}, args...), os.Environ())
	fmt.Fprintf(os.Stderr, "standin: %s: %v\n", program, err)
	os.Exit(2)
}
