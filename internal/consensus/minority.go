package consensus

import (
	"fmt"
	"strings"

	"github.com/hashicorp/raft"
)

// minorityText says why there can be no leader, by what the others answered:
// empty if a majority of the participants is there, which will elect one.
func (n *Node) minorityText(id identity, answers map[int]welcome) string {
	voters, there := 0, 0
	var why []string
	for _, s := range n.raftServers() {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		number, _ := splitRaftID(string(s.ID))
		w, answered := answers[number]
		switch {
		case string(s.ID) == id.raftID():
			there++
		case !answered:
			why = append(why, fmt.Sprintf("server %d does not answer", number))
		case w.ID != string(s.ID):
			why = append(why, fmt.Sprintf("server %d has come back without its data", number))
		default:
			there++
		}
	}
	if there > voters/2 {
		return ""
	}
	return fmt.Sprintf("%d of %d participants are there and %d are needed: %s", there, voters, voters/2+1, strings.Join(why, ", "))
}

// setMinority notes why there can be no leader, and says so once.
func (n *Node) setMinority(text string) {
	n.mu.Lock()
	changed := n.minority != text
	n.minority = text
	n.mu.Unlock()
	if changed && text != "" {
		n.logger.Warn("there is no majority of the ensemble", "reason", text)
	}
}
