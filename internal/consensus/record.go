package consensus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
)

// castagnoli is the polynomial of every checksum in this room; current
// processors compute it in hardware.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealRecord encodes a small piece of metadata as one line "zooraft KIND 1 CRC"
// followed by JSON, so that an operator can read it and a flipped bit cannot hide.
func sealRecord(kind string, v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	head := recordHead(kind, crc32.Checksum(body, castagnoli))
	return append(head, body...), nil
}

// openRecord is the inverse of sealRecord; any difference is ErrCorrupt.
func openRecord(kind string, data []byte, v any) error {
	end := bytes.IndexByte(data, '\n')
	if end < 0 {
		return fmt.Errorf("%w: %s has no header", ErrCorrupt, kind)
	}
	body := data[end+1:]
	if want := recordHead(kind, crc32.Checksum(body, castagnoli)); !bytes.Equal(data[:end+1], want) {
		return fmt.Errorf("%w: %s does not have its checksum", ErrCorrupt, kind)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%w: %s: %v", ErrCorrupt, kind, err)
	}
	return nil
}

func recordHead(kind string, sum uint32) []byte {
	return fmt.Appendf(nil, "zooraft %s 1 %08x\n", kind, sum)
}
