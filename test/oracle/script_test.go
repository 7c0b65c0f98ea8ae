package oracle

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A generated script survives its text form, so that a printed one replays.
func TestScriptsReadBackAsWritten(t *testing.T) {
	for seed := range uint64(40) {
		want := Generate(seed, 200, configs[seed%uint64(len(configs))])
		got, err := Parse(strings.NewReader(want.String()))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Fatalf("seed %d reads back otherwise", seed)
		}
	}
}

// A seed is a script: it replays on any machine.
func TestASeedAlwaysMakesTheSameScript(t *testing.T) {
	a, b := Generate(7, 300, ""), Generate(7, 300, "")
	if a.String() != b.String() {
		t.Error("seed 7 made two scripts")
	}
	if c := Generate(8, 300, ""); c.String() == a.String() {
		t.Error("seeds 7 and 8 made the same script")
	}
}

// What does not matter goes, wherever it stands; what matters together stays.
func TestMinimiseKeepsExactlyTheStepsThatMatter(t *testing.T) {
	needs := []string{"call a create $/3", "call a create $/97", "call a create $/98"}
	var steps []Step
	for i := range 200 {
		steps = append(steps, step("call a create $/%d", i))
	}
	asked := 0
	shows := func(s []Step) bool {
		asked++
		for _, n := range needs {
			if !slices.ContainsFunc(s, func(st Step) bool { return st.String() == n }) {
				return false
			}
		}
		return true
	}
	var got []string
	for _, s := range minimise(steps, shows) {
		got = append(got, s.String())
	}
	if !slices.Equal(got, needs) {
		t.Errorf("%v is left, want %v", got, needs)
	}
	if asked > 200 {
		t.Errorf("asked %d times for 200 steps", asked)
	}
}

// What no script can mean is refused where it stands.
func TestScriptsThatCannotBeReadNameTheLine(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a step before any script", "connect a", "line 1"},
		{"an unknown verb", "script x\n\nfly a", "line 3"},
		{"an open quote", "script x\ncall a create \"$/x", "line 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Parse(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one that names %s", err, c.want)
			}
		})
	}
}
