package config

import (
	"fmt"
	"sort"
	"strings"
)

// Ensemble is the membership and the timing between servers.
type Ensemble struct {
	// MyID is the number in dataDir/myid, or -1 when there is no such file.
	MyID int64
	// Servers are the server.N lines in order of N; empty for a server alone.
	Servers []Member
	// Groups and Weights are the group.N and weight.N lines.
	Groups  map[int64][]int64
	Weights map[int64]int64
	// Version is the configuration's version: the hexadecimal end of the dynamic
	// file's name, or 0.
	Version int64
	// DynamicFile is the path of the dynamic configuration, or empty
	// (dynamicConfigFile).
	DynamicFile string
	// StandaloneEnabled makes one participant a server alone. Default true.
	StandaloneEnabled bool
	// ReconfigEnabled allows reconfig. Default false.
	ReconfigEnabled bool
	// InitLimit is the time in ticks for connecting and catching up; SyncLimit
	// the time a server may lag. No default; both needed in an ensemble.
	InitLimit, SyncLimit int
	// ConnectToLearnerMasterLimit is in ticks; 0 means InitLimit. Default 0.
	ConnectToLearnerMasterLimit int
	// ListenOnAllIPs binds the peer ports on every address. Default false
	// (quorumListenOnAllIPs).
	ListenOnAllIPs bool
	// PeerListen is host:port of the peer port where the own server line's
	// address is not this machine's. Default empty: as in the server line
	// (peerListenAddress, zooraft's own).
	PeerListen string
	// Observer is what peerType says; the server line decides. Default false.
	Observer bool
	// SyncEnabled lets an observer keep log and snapshots. Default true.
	SyncEnabled bool
	// MultiAddress allows several addresses in a server line. Default false
	// (multiAddress.enabled).
	MultiAddress bool
	// LeaderServes lets a leader take clients. Default true.
	LeaderServes bool
	// ReadOnlyMode serves reads while there is no quorum. Default false
	// (readonlymode.enabled).
	ReadOnlyMode bool
}

// DefaultEnsemble returns Apache's defaults.
func DefaultEnsemble() Ensemble {
	return Ensemble{MyID: -1, StandaloneEnabled: true, SyncEnabled: true, LeaderServes: true}
}

// Participants returns the voting members.
func (e Ensemble) Participants() []Member {
	var voting []Member
	for _, m := range e.Servers {
		if !m.Observer {
			voting = append(voting, m)
		}
	}
	return voting
}

// Distributed reports whether the server is one of an ensemble rather than a
// server alone. As in Apache one participant is alone unless standaloneEnabled
// is false.
func (e Ensemble) Distributed() bool {
	voting := len(e.Participants())
	return voting > 1 || voting == 1 && !e.StandaloneEnabled
}

// member returns the line of a server.
func (e Ensemble) member(id int64) (Member, bool) {
	for _, m := range e.Servers {
		if m.ID == id {
			return m, true
		}
	}
	return Member{}, false
}

// own returns the line of this server: the one with the number in myid, or, for
// a server alone without a myid file, the only line there is.
func (e Ensemble) own() (Member, bool) {
	if e.MyID < 0 && len(e.Servers) == 1 && !e.Distributed() {
		return e.Servers[0], true
	}
	return e.member(e.MyID)
}

// add puts a member in its place; a later line with the same number wins.
func (e *Ensemble) add(m Member) {
	for i, old := range e.Servers {
		if old.ID == m.ID {
			e.Servers[i] = m
			return
		}
	}
	e.Servers = append(e.Servers, m)
	sort.Slice(e.Servers, func(i, j int) bool { return e.Servers[i].ID < e.Servers[j].ID })
}

// ttlServerID is the number that no server may have: it is the highest byte of its
// sessions' ids, and with this one an ephemeral's owner reads as a TTL. Apache
// refuses it where extendedTypesEnabled is set.
const ttlServerID = 255

// Validate checks relations and ranges.
func (e Ensemble) Validate() error {
	voting := e.Participants()
	own, known := e.own()
	switch {
	case e.MyID == ttlServerID, known && own.ID == ttlServerID:
		return &Error{Kind: ErrInvalid, Reason: fmt.Sprintf(
			"this server's number is %d, whose sessions cannot be told from TTL nodes: their ephemerals would stay", ttlServerID)}
	case len(voting) == 0 && !e.StandaloneEnabled:
		return invalid("standaloneEnabled", "is false, so at least one participant is needed")
	case len(voting) == 0 && len(e.Servers) > 0:
		return invalid(e.Servers[0].Key(), "observers need a participant")
	case !e.Distributed() && len(voting) == 1 && len(e.Servers) > 1:
		return invalid(voting[0].Key(), "observers need more than one participant while standaloneEnabled is true")
	}
	if err := e.validateGroups(); err != nil {
		return err
	}
	if !e.Distributed() {
		return nil
	}
	switch {
	case e.InitLimit == 0:
		return invalid("initLimit", "is not set")
	case e.SyncLimit == 0:
		return invalid("syncLimit", "is not set")
	case e.MyID < 0:
		return &Error{Kind: ErrInvalid, Reason: "the file myid is missing in dataDir"}
	}
	if _, ok := e.member(e.MyID); !ok {
		return &Error{Kind: ErrInvalid, Reason: fmt.Sprintf(
			"the file myid in dataDir says %d, and no line server.%d is among the server lines", e.MyID, e.MyID)}
	}
	return nil
}

// validateGroups demands, as Apache does, that every participant is in a group
// as soon as there is one group or weight.
func (e Ensemble) validateGroups() error {
	if e.Groups == nil && e.Weights == nil {
		return nil
	}
	grouped := map[int64]bool{}
	for _, members := range e.Groups {
		for _, id := range members {
			if grouped[id] {
				return invalid("group", "server %d is in two groups", id)
			}
			grouped[id] = true
		}
	}
	for _, m := range e.Participants() {
		if !grouped[m.ID] {
			return invalid(m.Key(), "is in no group")
		}
	}
	return nil
}

func setPeerType(e *Ensemble, raw string) error {
	switch strings.ToLower(raw) {
	case "observer":
		e.Observer = true
	case "participant":
		e.Observer = false
	default:
		return invalid("", "%q is neither participant nor observer", raw)
	}
	return nil
}
