//go:build unix && !linux

package consensus

import "os"

// allocate extends the file; these systems have no portable reservation.
func allocate(f *os.File, size int64) error { return f.Truncate(size) }

// syncData makes written bytes durable.
func syncData(f *os.File) error { return f.Sync() }
