package oracle

import (
	"fmt"
	"strings"
)

// weighted is a choice of the generator.
type weighted struct {
	weight int
	make   func(g *generator) string
}

func (g *generator) weigh(options []weighted) string {
	total := 0
	for _, o := range options {
		total += o.weight
	}
	n := g.rng.IntN(total)
	for _, o := range options {
		if n -= o.weight; n < 0 {
			return o.make(g)
		}
	}
	return ""
}

// op returns any operation that leaves the connection open.
func (g *generator) op() string { return g.weigh(operations) }

// operations is filled below; init breaks the cycle through multi.
var operations []weighted

func init() {
	operations = append(append(append([]weighted{}, writes...), reads...), []weighted{
		{3, func(g *generator) string {
			// Without a TTL mode a negative lifetime would stop the real server.
			head := fmt.Sprintf("createTTL %s data=%s acl=%s", g.path(), g.data(), g.acl())
			if g.chance(30) {
				return head + fmt.Sprintf(" flags=%s ttl=%s", g.pick("0", "1", "4", "8"), g.pick("0", "100000"))
			}
			return head + fmt.Sprintf(" flags=%s ttl=%s", g.pick("5", "6"),
				g.pick("60000", "100000", "0", "-1", "1099511627775", "1099511627776", "9223372036854775807"))
		}},
		{8, func(g *generator) string { return "multi " + g.multi(multiWrites) }},
		{3, func(g *generator) string { return "multiRead " + g.multi(multiReads) }},
		{1, func(g *generator) string { return g.pick("multi [ ]", "multiRead [ ]", "multi [ ] noend") }},
		{3, (*generator).setWatches},
		{2, (*generator).quota},
	}...)
}

// writes are the plain writes, bad ones included.
var writes = []weighted{
	{14, func(g *generator) string {
		return fmt.Sprintf("%s %s data=%s acl=%s flags=%s", g.pick("create", "create", "create2"), g.path(), g.data(), g.acl(),
			g.flags())
	}},
	{2, func(g *generator) string {
		return fmt.Sprintf("createContainer %s data=%s acl=%s flags=%s", g.path(), g.data(), g.acl(), g.pick("4", "4", "0", "2", "9"))
	}},
	{8, func(g *generator) string {
		path := g.path()
		if path == "$" {
			path = g.path() // the root rarely: without it little else works
		}
		return fmt.Sprintf("delete %s v=%s", path, g.version())
	}},
	{10, func(g *generator) string {
		return fmt.Sprintf("setData %s data=%s v=%s", g.path(), g.data(), g.version())
	}},
}

// multiWrites are what a multi may hold. A check alone costs the connection,
// so it is no plain operation.
var multiWrites = append([]weighted{
	{3, func(g *generator) string {
		return fmt.Sprintf("createTTL %s data=%s acl=%s flags=%s ttl=%s", g.path(), g.data(), g.acl(), g.pick("5", "5", "6", "0", "1", "4", "8"),
			g.pick("60000", "100000", "0", "-1", "1099511627775", "1099511627776", "9223372036854775807"))
	}},
	{4, func(g *generator) string { return fmt.Sprintf("check %s v=%s", g.path(), g.version()) }},
}, writes...)

// reads and everything else that is no write of a multi.
var reads = []weighted{
	{5, func(g *generator) string { return "exists " + g.watch(g.path()) }},
	{6, func(g *generator) string { return "getData " + g.watch(g.path()) }},
	{5, func(g *generator) string {
		return g.pick("getChildren", "getChildren2") + " " + g.watch(g.path())
	}},
	{3, func(g *generator) string { return "getACL " + g.path() }},
	{4, func(g *generator) string {
		return fmt.Sprintf("setACL %s acl=%s v=%s", g.ownPath(), g.acl(), g.version())
	}},
	{2, func(g *generator) string { return "sync " + g.path() }},
	{1, func(g *generator) string { return "ping" }},
	{1, func(g *generator) string { return "whoAmI" }},
	{2, func(g *generator) string { return "getEphemerals " + g.path() }},
	{2, func(g *generator) string { return "getAllChildrenNumber " + g.path() }},
	{4, func(g *generator) string {
		return fmt.Sprintf("addWatch %s type=%s", g.path(), g.pick("0", "0", "1", "1", "2", "-1"))
	}},
	{4, func(g *generator) string {
		return fmt.Sprintf("%s %s type=%s", g.pick("removeWatches", "removeWatches", "checkWatches"), g.watchedPath(), g.pick("1", "2", "3", "3", "4", "5", "0", "6"))
	}},
	{1, func(g *generator) string {
		return fmt.Sprintf("reconfig joining=%s leaving=%s members=%s id=%s", g.pick("null", `"server.1=127.0.0.1:1:2:participant;3"`, `""`),
			g.pick("null", "1", "x"), g.pick("null", "null", `"server.1=127.0.0.1:1:2;3"`), g.pick("-1", "0", "5"))
	}},
}

// multiReads are what a multiRead may hold.
var multiReads = []weighted{
	{5, func(g *generator) string { return fmt.Sprintf("getData %s w=%s", g.path(), g.pick("0", "1")) }},
	{5, func(g *generator) string { return fmt.Sprintf("getChildren %s w=%s", g.path(), g.pick("0", "1")) }},
}

// multi returns sub-operations. Now and then one does not belong there.
func (g *generator) multi(of []weighted) string {
	var subs []string
	for range 1 + g.rng.IntN(5) {
		op := ""
		switch {
		case g.chance(3):
			op = g.pick("exists $/a", "getChildren2 $/a", "sync $/a", "setACL $/a", "op=0 rec=00", "op=-1 rec=00000000", "ping", "deleteContainer $/a")
		case g.chance(2):
			op = g.pick("getData $/a", "create $/a data=1", "check $/a")
		case g.chance(60):
			op = g.tame(of)
		default:
			op = g.weigh(of)
		}
		subs = append(subs, op)
	}
	return "[ " + strings.Join(subs, " ; ") + " ]"
}

// tame prefers operations that succeed, so that some multis do.
func (g *generator) tame(of []weighted) string {
	if len(of) == len(multiReads) {
		return g.weigh(of)
	}
	switch g.rng.IntN(4) {
	case 0:
		return fmt.Sprintf("%s %s/q data=%s flags=%s", g.pick("create", "create2"), g.pick("$", "$/a", "$/b"), g.data(), g.pick("2", "3"))
	case 1:
		return fmt.Sprintf("setData %s data=%s", g.pick("$", "$/a"), g.data())
	case 2:
		return fmt.Sprintf("check %s", g.pick("$", "$/a", "$/b"))
	}
	return fmt.Sprintf("create %s data=%s", g.ownPath(), g.data())
}

// own is a small pool, so that operations meet each other's nodes.
var own = []string{
	"$", "$/a", "$/b", "$/c", "$/a/x", "$/a/y", "$/a/x/1", "$/a/x/2", "$/b/x", "$/b/y", "$/c/z",
	"$/a/q0000000000", "$/a/q0000000001", "$/q0000000001", "$/b/q0000000002", `"$/é"`, `"$/日本"`, "$/a=b", `"$/sp ace"`,
}

// special nodes that every server has, and those beside the script's root. The
// nodes of a quota are not among them: a broken text there stops the real server.
var special = []string{
	"/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota", "/zookeeper/quota$", "/zookeeper/x", "/top",
}

// bad paths that some check or other refuses.
var bad = []string{
	`""`, "null", "a", "a/b", "$/", "//", "$//a", "$/a//x", "$/./x", "$/a/..", "$/.", "$/..", "$/...", `"$/a\x00b"`, `"$/\x01"`, `"$/\x7f"`,
	`"$/\u0085"`, `"$/\u00a0"`, `"$/\ue000"`, `"$/\uf8ff"`, `"$/\uf900"`, `"$/\uffef"`, `"$/\ufff0"`, `"$/\ufffd"`, `"$/😀"`, `"$/\xff"`, `"$/\xed\xa0\x80"`, "$/a/x/", "$/nope/x",
	`"$/a\n"`, `"$/ "`,
}

func (g *generator) ownPath() string {
	// The first ones more often.
	return own[min(g.rng.IntN(len(own)), g.rng.IntN(len(own)), g.rng.IntN(len(own)))]
}

// watch completes a read with a watch flag, and remembers where one may be.
func (g *generator) watch(path string) string {
	if g.chance(50) {
		return path + " w=0"
	}
	g.watched[g.current] = append(g.watched[g.current], path)
	return path + " w=1"
}

// watchedPath returns a path that the current connection may watch, mostly.
func (g *generator) watchedPath() string {
	w := g.watched[g.current]
	if len(w) == 0 || g.chance(30) {
		return g.path()
	}
	return w[max(0, len(w)-1-g.rng.IntN(4))]
}

// flags are create modes, the plain one mostly.
func (g *generator) flags() string {
	if g.chance(55) {
		return "0"
	}
	return g.pick("0", "1", "1", "1", "2", "2", "3", "3", "4", "5", "6", "7", "-1")
}

func (g *generator) path() string {
	switch n := g.rng.IntN(100); {
	case n < 90:
		return g.ownPath()
	case n < 94:
		return special[g.rng.IntN(len(special))]
	}
	return bad[g.rng.IntN(len(bad))]
}

func (g *generator) data() string {
	return g.pick("null", `""`, "1", "hello", `"a b"`, "hex:00ff80", "rep:100", "rep:3000", "$")
}

func (g *generator) version() string {
	if g.chance(65) {
		return "-1"
	}
	return g.pick("0", "0", "0", "1", "1", "2", "3", "-2", "99", "2147483647", "-2147483648")
}

func (g *generator) acl() string {
	switch n := g.rng.IntN(100); {
	case n < 75:
		return "open"
	case n < 87:
		return g.pick("1:world:anyone", "30:world:anyone", "27:world:anyone", "23:world:anyone", "16:world:anyone", "31:auth:", "31:ip:127.0.0.1",
			"31:ip:10.0.0.1", `"1:world:anyone|31:auth:"`, `"31:digest:u:LEUVJi6RJuoxUfPJwGkfNmAsrkU="`)
	}
	return g.pick(
		"31:world:anyone", "1:world:anyone", "31:auth:", "31:auth:x", "0:world:anyone", "255:world:anyone", "-1:world:anyone",
		`"31:digest:u:LEUVJi6RJuoxUfPJwGkfNmAsrkU="`, `"1:digest:u:x|31:world:anyone"`, "31:ip:127.0.0.1", "31:ip:127.0.0.1/8", "31:ip:10.0.0.1",
		"1:ip:127.0.0.0/33", "31:ip:300.1.1.1", "31:ip:", "31:ip:::1", "31:world:x", "31:digest:nocolon", "31:digest:a:b:c", "31:nosuch:x", "31:x509:CN=a", "31:sasl:bob",
		"31:super:", "null", "empty", "31:~:anyone", "31:world:~", "31:world:anyone|31:world:anyone", "31:world:anyone|1:auth:", "30:world:anyone", "15:world:anyone", "27:world:anyone",
		"16:world:anyone", "2:world:anyone", "4:world:anyone",
	)
}

func (g *generator) setWatches() string {
	list := func(n int) string {
		var p []string
		for range g.rng.IntN(n) {
			e := g.ownPath()
			if g.chance(5) {
				e = g.pick("~", "/", "a", "/zookeeper")
			}
			if !strings.HasPrefix(e, `"`) {
				p = append(p, e)
			}
		}
		return `"` + strings.Join(p, "|") + `"`
	}
	rel := g.pick("base", "last", "last-1", "last-5", "0", "base+10")
	if g.marks > 0 && g.chance(50) {
		rel = fmt.Sprintf("@m%d", 1+g.rng.IntN(g.marks))
	}
	xid := g.pick("", " xid=-8")
	if g.chance(50) {
		return fmt.Sprintf("setWatches rel=%s d=%s e=%s c=%s%s", rel, list(4), list(4), list(4), xid)
	}
	return fmt.Sprintf("setWatches2 rel=%s d=%s e=%s c=%s p=%s r=%s%s", rel, list(3), list(3), list(3), list(3), list(2), xid)
}

// quota returns one of the steps that make, use or undo a quota of the root.
func (g *generator) quota() string {
	const q = "/zookeeper/quota$"
	return g.pick(
		"create "+q, "create "+q,
		`create `+q+`/zookeeper_limits data="count=6,bytes=-1=;byteHardLimit=-1;countHardLimit=8"`,
		`create `+q+`/zookeeper_limits data="count=-1,bytes=10=;byteHardLimit=200;countHardLimit=-1"`,
		`create `+q+`/zookeeper_limits data="count=3,bytes=100"`,
		`create `+q+`/zookeeper_stats data="count=0,bytes=0"`,
		`create `+q+`/zookeeper_stats data="count=0,bytes=0"`,
		"getData "+q+"/zookeeper_stats", "getData "+q+"/zookeeper_limits", "delete "+q+"/zookeeper_limits", "delete "+q+"/zookeeper_stats",
	)
}
