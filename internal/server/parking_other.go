//go:build !linux

package server

import (
	"errors"
	"syscall"
)

// parking exists on Linux only.
type parking struct{}

func newParking() (*parking, error) { return nil, errors.ErrUnsupported }

func (*parking) arm(syscall.RawConn, uint64, bool) error { return errors.ErrUnsupported }
func (*parking) wait(func(id uint64))                    {}
func (*parking) close() error                            { return nil }
