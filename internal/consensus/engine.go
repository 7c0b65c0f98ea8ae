package consensus

import (
	"io"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// engine is an open log store without our own checks; see logStore for those.
type engine interface {
	raft.LogStore
	io.Closer

	// confirm says that what was opened has been compared with the other
	// evidence and is complete: only now may files that the store thinks are
	// left over be removed.
	confirm() error

	// room is how much space a new file takes at once, in bytes; 0 if none does.
	room() int
}

// engineOpener opens one log store. It is called at start and after a full
// disk. With create the store may be made from nothing; without, a missing
// file is an error. A log whose end cannot be read is refused if that end was
// acknowledged, before anything is changed.
type engineOpener func(create bool, acknowledged uint64) (engine, error)

// openEngine returns the opener of the configured log store.
func (c Config) openEngine(logger hclog.Logger) engineOpener {
	dir := c.layout().log(c.LogStore)
	if c.LogStore == LogStoreMemory {
		return func(bool, uint64) (engine, error) { return memoryEngine{c.Memory.log}, nil }
	}
	if c.LogStore == LogStoreBolt {
		return func(create bool, _ uint64) (engine, error) { return openBoltLog(dir, create, c.BoltSynced) }
	}
	return func(create bool, acknowledged uint64) (engine, error) {
		return openWALLog(c.FS, dir, segmentBytes(dir, c.SegmentBytes), create, acknowledged, &packedCodec{pack: c.Pack, unpack: c.Unpack}, logger)
	}
}
