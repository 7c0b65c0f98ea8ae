package bench

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/bench"
	"github.com/zooraft/zooraft/test/peer"
)

// loadRows measure what clients see under load, with n servers.
func loadRows(b *testing.B, n int, s *samples) {
	var sites []*site
	for _, kind := range kinds {
		sites = append(sites, startSite(b, kind, n, fixedHeap))
	}
	defer func() {
		for _, site := range sites {
			site.stop(b)
		}
	}()
	peak := map[string]float64{} // of the real server, by workload
	for i, workload := range []string{"read", "mixed-90", "mixed-50", "write"} {
		if wanted(workload) {
			for _, site := range byTurns(sites, i) {
				r := measure(b, site, workload, fmt.Sprintf("%s/%d", workload, n), s)
				if site.kind == "apache" {
					peak[workload] = r.PerSecond
				}
			}
		}
	}
	for i, workload := range []string{"read", "write"} {
		if rate := peak[workload] * *tailShare; wanted("tail") && rate > 0 {
			for _, site := range byTurns(sites, i) {
				tailAt(b, site, workload, rate, n, s)
			}
		}
	}
	if wanted("latency") {
		latencyRows(b, sites, n, s)
	}
	if wanted("fanout") {
		for _, site := range byTurns(sites, 1) {
			fanOut(b, site, n, s)
		}
	}
	if wanted("small") && n == 3 {
		smallRows(b, sites, s)
	}
	if wanted("ephemerals") && n == 1 {
		for _, site := range sites {
			r := site.load(b, site.addresses(), "ephemerals", "--nodes", "10000", "--value-size", "10")
			s.add(site.kind, "ephemerals/1", median(r.RoundMillis))
		}
	}
}

// smallRows has more and more clients set a hundred bytes, one at a time each.
func smallRows(b *testing.B, sites []*site, s *samples) {
	for i, clients := range smallClients {
		args := append(window(), "--connections", fmt.Sprint(clients), "--outstanding", "1", "--value-size", "100")
		for _, site := range byTurns(sites, i) {
			var r bench.Result
			used := site.during(b, func() { r = site.load(b, site.addresses(), "write", args...) })
			key := fmt.Sprintf("small/%d/3", clients)
			s.add(site.kind, key, r.PerSecond)
			s.add(site.kind, fmt.Sprintf("small/p99/%d/3", clients), r.Latency.P99)
			s.standOn(site.kind, key, r, used, "write")
			s.note(site.kind, key, "%s", describe(r, used, "write"))
		}
	}
}

// smallClients are the connections of the row small: those of case 65.
var smallClients = []int{1, 16, 128, 512}

// coresRow reads from our server with one and with two processors.
func coresRow(b *testing.B, s *samples) {
	for _, n := range []int{1, 2} {
		opts := options("zooraft", nil)
		opts.Env = []string{fmt.Sprintf("GOMAXPROCS=%d", n)}
		site := &site{kind: "zooraft", servers: []*peer.Server{peer.StartZooraft(b, opts)}}
		r := site.load(b, site.addresses(), "read", shape()...)
		s.add("zooraft", fmt.Sprintf("cores/%d", n), r.PerSecond)
		s.note("zooraft", fmt.Sprintf("cores/%d", n), "client %.2f processors", r.Client.CPUSeconds/r.Client.Seconds)
		site.stop(b)
	}
}

// byTurns changes who comes first.
func byTurns(sites []*site, i int) []*site {
	if (i+turnNow)%2 == 1 {
		return []*site{sites[1], sites[0]}
	}
	return sites
}

// window of a measurement and its warm-up.
func window() []string {
	return []string{"--warm-up", warmUp.String(), "--duration", duration.String()}
}

// shape of the full load: what the table of targets asks for.
func shape() []string {
	return append(window(), "--connections", fmt.Sprint(*connections), "--outstanding", fmt.Sprint(*outstanding),
		"--value-size", fmt.Sprint(*valueSize))
}

func measure(b *testing.B, site *site, workload, key string, s *samples) (r bench.Result) {
	used := site.during(b, func() { r = site.load(b, site.addresses(), workload, shape()...) })
	s.add(site.kind, key, r.PerSecond)
	s.standOn(site.kind, key, r, used, workload)
	s.note(site.kind, key, "%s", describe(r, used, workload))
	return r
}

// writes is the share of a workload's requests that write.
var writes = map[string]float64{"write": 1, "mixed-50": 0.5, "mixed-90": 0.1, "write-latency": 1}

// standOn keeps what a figure of load stood on.
func (s *samples) standOn(kind, key string, r bench.Result, used spent, workload string) {
	s.add(kind, "cpu/"+key, 1e6*used.cpu/r.PerSecond)
	s.add(kind, "client/"+key, r.Client.CPUSeconds/r.Client.Seconds)
	s.add(kind, "busy/"+key, 100*r.Client.Busy)
	if share := writes[workload]; share > 0 && used.syncs > 0 {
		s.add(kind, "syncs/"+key, used.syncs)
		s.add(kind, "persync/"+key, r.PerSecond*share/used.syncs)
	}
}

// describe says what a figure of load stood on.
func describe(r bench.Result, used spent, workload string) string {
	text := fmt.Sprintf("p50 %.0f µs, p99 %.0f µs, p99.9 %.0f µs; servers %.2f processors, client %.2f, machine busy %.0f%%",
		r.Latency.P50, r.Latency.P99, r.Latency.P999, used.cpu, r.Client.CPUSeconds/r.Client.Seconds, 100*r.Client.Busy)
	if share := writes[workload]; share > 0 && used.syncs > 0 {
		text += fmt.Sprintf("; %.0f syncs/s at the leader, %.1f writes per sync, %.1f MB/s to disk",
			used.syncs, r.PerSecond*share/used.syncs, used.written/1e6)
	}
	return text
}

// tailAt measures latency with requests sent by the clock.
func tailAt(b *testing.B, site *site, workload string, rate float64, n int, s *samples) {
	args := append(shape(), "--rate", fmt.Sprintf("%.0f", rate))
	var r bench.Result
	var err error
	used := site.during(b, func() { r, err = site.try(b, site.addresses(), workload, args...) })
	key := fmt.Sprintf("tail/%s/p99/%d", workload, n)
	if err != nil {
		s.note(site.kind, key, "at %.0f/s: %v", rate, err)
		return
	}
	s.add(site.kind, key, r.Latency.P99)
	s.add(site.kind, fmt.Sprintf("tail/%s/p999/%d", workload, n), r.Latency.P999)
	s.note(site.kind, key, "at %.0f/s, %s", rate, describe(r, used, workload))
}

// latencyRows have one connection with one request in work.
func latencyRows(b *testing.B, sites []*site, n int, s *samples) {
	args := append(window(), "--value-size", fmt.Sprint(*valueSize))
	for _, site := range byTurns(sites, 0) {
		where := map[string]string{"": site.servers[0].Address}
		if n > 1 {
			where = map[string]string{"/leader": site.servers[site.leader].Address, "/follower": site.servers[(site.leader+1)%n].Address}
		}
		for _, role := range []string{"", "/leader", "/follower"} {
			addr, ok := where[role]
			if !ok {
				continue
			}
			var r bench.Result
			used := site.during(b, func() { r = site.load(b, addr, "write-latency", args...) })
			key := fmt.Sprintf("latency/%d%s", n, role)
			s.add(site.kind, key, r.Latency.P50)
			s.standOn(site.kind, key, r, used, "write-latency")
			s.note(site.kind, key, "%s", describe(r, used, "write-latency"))
		}
		if n == 1 {
			s.add(site.kind, "read-latency/1", site.load(b, site.addresses(), "read-latency", args...).Latency.P50)
		}
	}
}

func fanOut(b *testing.B, site *site, n int, s *samples) {
	r := site.load(b, site.addresses(), "watches", "--watchers", fmt.Sprint(*watchers), "--warm-up", "1s", "--duration", "1s",
		"--rounds", "10", "--value-size", "100", "--nodes", "1")
	key := fmt.Sprintf("fanout/%d", n)
	s.add(site.kind, key, median(r.RoundMillis))
	s.note(site.kind, key, "%d rounds, longest %.0f ms, client %.2f processors", len(r.RoundMillis), r.Latency.Max/1000, r.Client.CPUSeconds/r.Client.Seconds)
}

// wanted tells whether -rows names a row, or all.
func wanted(row string) bool {
	if *rows == "all" {
		return true
	}
	for _, name := range strings.Split(*rows, ",") {
		if name == row {
			return true
		}
	}
	return false
}
