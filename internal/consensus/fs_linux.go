package consensus

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate reserves size bytes of zeros. Where the file system cannot, the
// file is only extended, and a full disk shows at an append instead.
func allocate(f *os.File, size int64) error {
	err := retryInterrupted(func() error { return unix.Fallocate(int(f.Fd()), 0, 0, size) })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return f.Truncate(size)
	}
	return err
}

// syncData makes written bytes, and whatever is needed to find them, durable.
func syncData(f *os.File) error {
	return retryInterrupted(func() error { return unix.Fdatasync(int(f.Fd())) })
}

func retryInterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
