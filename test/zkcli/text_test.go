package zkcli

import (
	"strings"
	"testing"
)

// The shell prints an event from a thread of its own, in two pieces.
func TestTheTextOfAShellIsTheSameWhereverAnEventFalls(t *testing.T) {
	const title, event = "\nWATCHER::\n", "\nWatchedEvent state:SyncConnected type:NodeDeleted path:/p zxid: 7\n"
	for _, text := range []string{
		title + event + "first\nsecond\n",
		title + "first\n" + event + "second\n",
		"first\n" + title + event + "second\n",
		"first\n" + title + "second\n" + event,
		"first\nsecond\n" + title + event,
		"first\nsecond\n" + title,
	} {
		rest, events := SplitEvents(text)
		if rest != "first\nsecond\n" || len(events) != strings.Count(text, "WatchedEvent") {
			t.Errorf("%q gave %q and the events %q", text, rest, events)
		}
	}
}
