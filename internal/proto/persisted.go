package proto

// StatPersistedLen is the encoded length of a StatPersisted in bytes.
const StatPersistedLen = 60

// StatPersisted is a node's metadata as the tree keeps it and Apache's
// snapshots carry it. CVersion counts creates of children only and drives
// sequence numbers; EphemeralOwner also marks container and TTL nodes (see
// ClassifyOwner).
type StatPersisted struct {
	Czxid, Mzxid   Zxid
	Ctime, Mtime   int64 // Unix ms
	Version        int32
	CVersion       int32
	AVersion       int32
	EphemeralOwner int64
	Pzxid          Zxid
}

// AppendStatPersisted adds the record to dst.
func AppendStatPersisted(dst []byte, s *StatPersisted) []byte {
	dst = AppendLong(AppendLong(dst, int64(s.Czxid)), int64(s.Mzxid))
	dst = AppendLong(AppendLong(dst, s.Ctime), s.Mtime)
	dst = AppendInt(AppendInt(AppendInt(dst, s.Version), s.CVersion), s.AVersion)
	return AppendLong(AppendLong(dst, s.EphemeralOwner), int64(s.Pzxid))
}

// StatPersisted reads the record.
func (d *Decoder) StatPersisted() StatPersisted {
	return StatPersisted{
		Czxid: Zxid(d.Long()), Mzxid: Zxid(d.Long()), Ctime: d.Long(), Mtime: d.Long(),
		Version: d.Int(), CVersion: d.Int(), AVersion: d.Int(),
		EphemeralOwner: d.Long(), Pzxid: Zxid(d.Long()),
	}
}

// Wire returns the Stat that a client sees of a node with dataLength bytes and
// numChildren direct children.
func (s *StatPersisted) Wire(dataLength, numChildren int) Stat {
	st := Stat{
		Czxid: s.Czxid, Mzxid: s.Mzxid, Ctime: s.Ctime, Mtime: s.Mtime,
		Version: s.Version, CVersion: 2*s.CVersion - int32(numChildren), AVersion: s.AVersion,
		DataLength: int32(dataLength), NumChildren: int32(numChildren), Pzxid: s.Pzxid,
	}
	if kind, _ := ClassifyOwner(s.EphemeralOwner); kind == OwnerSession {
		st.EphemeralOwner = s.EphemeralOwner
	}
	return st
}
