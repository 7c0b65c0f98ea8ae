package main

import (
	"regexp"
	"strings"
)

// Of a long log often nothing but its end is kept, and the table stands there.
// So each failure's line says why, as far as that goes in a line.

const (
	reasonMax  = 600 // bytes
	racesMax   = 3   // reports of the race detector that are printed whole
	raceHeader = "WARNING: DATA RACE"
	raceRule   = "=================="
)

// said is how the testing package prints what a test says of a line of its own.
var said = regexp.MustCompile(`^ *[\w.-]+_test\.go:\d+: `)

// reason is where the race detector found it, or what a failed test said first and
// last, for what it only logs looks like a failure; "" if there is nothing of these.
func reason(text string) string {
	why := ""
	if races := races(text); len(races) > 0 {
		why = "data race of " + strings.Join(accesses(races[0]), " and ")
	} else {
		var all []string
		for line := range strings.Lines(text) {
			if said.MatchString(line) {
				all = append(all, strings.TrimSpace(line))
			}
		}
		if len(all) > 3 {
			all = append(all[:1], all[len(all)-2:]...)
		}
		why = strings.Join(all, " | ")
	}
	if why == "" {
		return ""
	}
	return ": " + why[:min(len(why), reasonMax)]
}

// races returns the first reports of the race detector.
func races(text string) (reports []string) {
	for len(reports) < racesMax {
		_, after, found := strings.Cut(text, raceHeader)
		if !found {
			break
		}
		var report string
		report, text, _ = strings.Cut(after, raceRule)
		reports = append(reports, raceHeader+report)
	}
	return reports
}

// accesses returns the function and the place of each access of a report: the
// two lines below "Write at" and the like.
func accesses(report string) (places []string) {
	lines := strings.Split(report, "\n")
	for i, line := range lines {
		word := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(line)), "previous ")
		if i+2 < len(lines) && (strings.HasPrefix(word, "read at") || strings.HasPrefix(word, "write at")) {
			place, _, _ := strings.Cut(strings.TrimSpace(lines[i+2]), " +0x")
			places = append(places, strings.TrimSpace(lines[i+1])+" "+place[strings.LastIndex(place, "/")+1:])
		}
	}
	return places
}
