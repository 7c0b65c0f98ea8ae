package consensus

import (
	"errors"
	"fmt"
	"os"

	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/types"
)

// walMetaName is the file that lists the segments of the wal log store.
const walMetaName = "segments"

// walMeta keeps raft-wal's list of segments in one checksummed file that is
// replaced whole. raft-wal's own choice is a bbolt file, which is refused for
// three reasons: when it is missing or falls back to an older meta page,
// raft-wal takes newer segments for left-overs and deletes them; its pages have
// no checksums; and it cannot be put on a file layer that loses power.
type walMeta struct {
	fs     FS
	dir    string
	create bool

	rotation *rotation
}

// Load implements types.MetaStore.
func (m *walMeta) Load(string) (types.PersistentState, error) {
	var state types.PersistentState
	data, err := m.fs.ReadFile(m.dir, walMetaName)
	if errors.Is(err, os.ErrNotExist) {
		if m.create {
			return state, nil
		}
		return state, fmt.Errorf("%w: %s/%s is missing", ErrLess, m.dir, walMetaName)
	}
	if err != nil {
		return state, err
	}
	if err := openRecord("wal-segments", data, &state); err != nil {
		return state, fmt.Errorf("%s/%s: %w", m.dir, walMetaName, err)
	}
	state.Segments = withCodec(packedCodecID, state.Segments...)
	return state, nil
}

// CommitState implements types.MetaStore.
func (m *walMeta) CommitState(state types.PersistentState) error {
	state.Segments = withCodec(wal.CodecBinaryV1, state.Segments...)
	data, err := sealRecord("wal-segments", state)
	if err != nil {
		return err
	}
	if err := m.fs.WriteFile(m.dir, walMetaName, data); err != nil {
		m.rotation.end(err)
		return err
	}
	return nil
}

// errNoStable says that Raft's stable store is elsewhere.
var errNoStable = errors.New("consensus: the wal log store keeps no stable values")

// GetStable implements types.MetaStore; it is never needed.
func (m *walMeta) GetStable([]byte) ([]byte, error) { return nil, errNoStable }

// SetStable implements types.MetaStore; it is never needed.
func (m *walMeta) SetStable(_, _ []byte) error { return errNoStable }

// Close implements types.MetaStore.
func (m *walMeta) Close() error { return nil }
