// Package consensus is the room that owns everything of hashicorp/raft: the
// log store, the stable store, the snapshot store, the transport, the packing
// of commands into log entries, and the answer to the question "is this server
// allowed to start on what lies on its disk".
//
// It orders byte slices and hands them to a StateMachine. It may not decode a
// command, import another room, or read anything in the data directory outside
// zooraft/ (Apache's version-2/ may lie beside it). No other room may import
// hashicorp/raft.
//
// The path of a write is one verb per step: Propose queues a command, the
// batcher packs what is queued into one entry and stamps it, Raft appends and
// commits it, and Raft's fsm goroutine applies it. Whoever proposed learns the
// result from its own state machine; this room only reports tokens whose
// entries may or may not be in the log (Events.FateUnknown).
//
// DESIGN.md in this directory draws the layout on disk and argues why a start
// never happens on less than what was acknowledged.
package consensus
