// Package oracle proves that zooraft answers as Apache ZooKeeper does. It
// drives the real server and zooraft with the same scripts over raw
// connections and compares what comes back, frame by frame: replies, watch
// events, their order on each connection, and closes.
//
// # How a run is made comparable
//
// A script is a list of steps over named connections. After each step but
// `send` every connection is fenced: the runner sends a ping and reads until
// its reply. Both servers answer a ping behind all that came before it, so
// what a step caused is what was read up to its fences, and the order between
// connections no longer depends on the scheduler.
//
// Of a transcript only what must differ is taken out:
//
//   - a zxid becomes its distance from the one at the script's start; 0 and −1
//     stay, older ones become "old";
//   - a time becomes "t" if it is the one that this zxid always had on that
//     server and is close to now, and stays 0 if it was 0;
//   - session ids become names by first appearance, passwords the name of the
//     session whose password they are;
//   - children and ephemerals, and the events that one session's end caused,
//     are sorted.
//
// All else is compared byte for byte. A difference that is on purpose is a row
// of docs/compatibility.md; a row masks one field of one kind of exchange, and
// each run prints how often each row was used.
//
// # Ensembles
//
// The same scripts run over three servers of each kind. Connection a of a script
// is at one server, b at the next, c at the third; a script's turn says which of
// them leads, and a connect with at= moves a session. What an ensemble does at
// its own pace is not compared, and this is all of it: when a server learns of a
// write that another one has answered. So the fence behind a step first waits
// until all servers have applied the same (Target.settle), and then pings: an
// event belongs to the step that caused it, at whichever server its watcher is.
// Behind `ask` there is no fence, and a script must read behind a sync of its
// own. The order on one connection is compared as with one server, also where
// reads and writes are pipelined through a follower; the order between
// connections never is.
//
// A write whose record cannot be read is not sent to ensembles, since it stops
// the real one (spared).
//
// # How to use it
//
//	go test ./test/oracle                                   everything, 20 fresh seeds
//	go test ./test/oracle -run Seeds -seed 7 -seeds 1       one seed again
//	go test ./test/oracle -run Corpus -script file.txt      scripts of your own
//	go test ./test/oracle -run Corpus -script file.txt -print    what the real server says
//	go test ./test/oracle -run Seeds -ours apache           the real server with itself
//	go test ./test/oracle -run Ensembles                    three servers, a few fresh seeds
//	go test ./test/oracle -run Ensembles -full              the same with every configuration, turn and restart
//	go test ./test/oracle -run Ensembles -onlyseeds -seeds 100
//
// The scripts under corpus follow the sections of ZooKeeper's protocol; their
// language is at Step. A difference prints the step, both servers' answers and
// their bytes; a seed is shrunk first. A seed that has found something goes
// into the corpus in its short form.
//
// The package owns scripts, their runner, the comparison, the generator and
// the shrinker. It may not know the server's rooms: it imports proto for op
// codes and record encoding, and nothing else of internal.
package oracle
