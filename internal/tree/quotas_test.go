package tree

import (
	"slices"
	"testing"
)

func TestQuotasAreListedAsOperatorsSeeThem(t *testing.T) {
	s := newScript()
	for _, l := range []string{
		"create /b abc", "create /zookeeper/quota/b null", "create /zookeeper/quota/b/zookeeper_limits count=9,bytes=8=;countHardLimit=5",
		"create /zookeeper/quota/b/zookeeper_stats null", "create /zookeeper/quota/a null",
		"create /zookeeper/quota/a/zookeeper_limits count=-1,bytes=7", "create /zookeeper/quota/c null",
		"create /zookeeper/quota/c/zookeeper_limits garbage", "create /zookeeper/quota/c/zookeeper_stats null",
		"set /zookeeper/quota/c/zookeeper_stats garbage", "create /zookeeper/quota/d null",
	} {
		s.run(l)
	}
	want := []Quota{
		{Path: "/a", CountLimit: -1, BytesLimit: 7, CountUsage: -1, BytesUsage: -1},
		{Path: "/b", CountLimit: 5, BytesLimit: 8, CountUsage: 1, BytesUsage: 3, HasUsage: true},
		{Path: "/c", CountLimit: -1, BytesLimit: -1, CountUsage: -1, BytesUsage: -1},
	}
	if got := s.tree.Quotas(); !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestNamespaceIsTheFirstComponent(t *testing.T) {
	for in, want := range map[string]string{"": "", "/": "", "/a": "a", "/a/b/c": "a", "/zookeeper/quota": "zookeeper"} {
		if got := Namespace(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestUsageTextsAreReadAsApacheReadsThem(t *testing.T) {
	for _, c := range []struct {
		in, out string
		ok      bool
	}{
		{"", "count=-1,bytes=-1", true},
		{"count=1,bytes=2", "count=1,bytes=2", true},
		{"count=1,bytes=2=;byteHardLimit=3;countHardLimit=4", "count=1,bytes=2=;byteHardLimit=3;countHardLimit=4", true},
		{"bytes=2,count=1", "count=1,bytes=2", true},
		{"z=1;a=2,count=+7", "count=7,bytes=-1=;a=2;z=1", true},
		{"count=1,count=2", "count=2,bytes=-1", true},
		{"count==5,,;bytes=6,,", "count=-1,bytes=6", true},
		{"=4", "count=-1,bytes=-1=;=4", true},
		{",", "count=-1,bytes=-1", true},
		{"count=9223372036854775807", "count=9223372036854775807,bytes=-1", true},
		{"count=9223372036854775808", "", false},
		{",count=1", "", false},
		{"count=", "", false},
		{"count", "", false},
		{"=", "", false},
		{"count= 1", "", false},
		{"count=x", "", false},
	} {
		u, ok := parseUsage([]byte(c.in))
		if ok != c.ok || ok && string(u.text()) != c.out {
			t.Errorf("%q: %q %v, want %q %v", c.in, u.text(), ok, c.out, c.ok)
		}
	}
	if _, ok := parseUsage(nil); ok {
		t.Error("null data were read")
	}
}
