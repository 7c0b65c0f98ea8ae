package peer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/zooraft/zooraft/test/toolchain"
)

// SmallDisk mounts a file system of 64 MiB that can be filled.
func SmallDisk(t testing.TB) string {
	t.Helper()
	return Disk(t, 64)
}

// Disk mounts a file system of so many MiB.
func Disk(t testing.TB, mebibytes int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mebibytes)); err != nil {
		toolchain.Denied(t, fmt.Sprintf("a tmpfs of its own: %v", err), toolchain.Holds(toolchain.SysAdmin))
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// Fill takes all space that is left and returns the file that holds it.
func Fill(t testing.TB, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{1 << 20, 4 << 10, 1} {
		block := bytes.Repeat([]byte{1}, size)
		for {
			if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	return path
}
