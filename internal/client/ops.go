package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/zooraft/zooraft/internal/proto"
)

// do sends a request, waits, and puts the path into a server's error.
func (c *Conn) do(ctx context.Context, op proto.OpCode, path string, body []byte) (*proto.Decoder, error) {
	reply, err := c.Do(op, body).Wait(ctx)
	var server *ServerError
	if errors.As(err, &server) {
		server.Path = path
	}
	if err != nil {
		return nil, err
	}
	return proto.NewDecoder(reply), nil
}

// decoded returns an error when an answer was shorter than its record.
func decoded(op proto.OpCode, d *proto.Decoder) error {
	if d.Err() != nil {
		return fmt.Errorf("%v: %w: %v", op, ErrProtocol, d.Err())
	}
	return nil
}

// Create creates a node with the open ACL and returns its path; flags is one of
// proto's Create constants without a TTL.
func (c *Conn) Create(ctx context.Context, path string, data []byte, flags int32) (string, error) {
	op := proto.OpCreate
	if flags == proto.CreateContainer {
		op = proto.OpCreateContainer
	}
	request := proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL, Flags: flags, TTL: -1}
	d, err := c.do(ctx, op, path, request.Append(nil, op))
	if err != nil {
		return "", err
	}
	created := d.String()
	return created, decoded(op, d)
}

// Delete deletes a node; version -1 matches any.
func (c *Conn) Delete(ctx context.Context, path string, version int32) error {
	request := proto.PathVersion{Path: path, Version: version}
	_, err := c.do(ctx, proto.OpDelete, path, request.Append(nil))
	return err
}

// Exists returns a node's stat, and sets a watch if asked.
func (c *Conn) Exists(ctx context.Context, path string, watch bool) (proto.Stat, error) {
	request := proto.PathWatch{Path: path, Watch: watch}
	d, err := c.do(ctx, proto.OpExists, path, request.Append(nil))
	if err != nil {
		return proto.Stat{}, err
	}
	stat := d.Stat()
	return stat, decoded(proto.OpExists, d)
}

// Get returns a node's data and stat, and sets a watch if asked.
func (c *Conn) Get(ctx context.Context, path string, watch bool) ([]byte, proto.Stat, error) {
	request := proto.PathWatch{Path: path, Watch: watch}
	d, err := c.do(ctx, proto.OpGetData, path, request.Append(nil))
	if err != nil {
		return nil, proto.Stat{}, err
	}
	data, stat := d.Buffer(), d.Stat()
	return data, stat, decoded(proto.OpGetData, d)
}

// Set sets a node's data; version -1 matches any.
func (c *Conn) Set(ctx context.Context, path string, data []byte, version int32) (proto.Stat, error) {
	request := proto.SetDataRequest{Path: path, Data: data, Version: version}
	d, err := c.do(ctx, proto.OpSetData, path, request.Append(nil))
	if err != nil {
		return proto.Stat{}, err
	}
	stat := d.Stat()
	return stat, decoded(proto.OpSetData, d)
}

// Children returns the names of a node's children in the server's order, and
// sets a watch if asked.
func (c *Conn) Children(ctx context.Context, path string, watch bool) ([]string, proto.Stat, error) {
	request := proto.PathWatch{Path: path, Watch: watch}
	d, err := c.do(ctx, proto.OpGetChildren2, path, request.Append(nil))
	if err != nil {
		return nil, proto.Stat{}, err
	}
	names, stat := d.Strings(), d.Stat()
	return names, stat, decoded(proto.OpGetChildren2, d)
}

// Sync waits until the server has caught up with the leader.
func (c *Conn) Sync(ctx context.Context, path string) error {
	_, err := c.do(ctx, proto.OpSync, path, proto.AppendString(nil, path))
	return err
}

// AddAuth adds an identity to the connection.
func (c *Conn) AddAuth(ctx context.Context, scheme string, auth []byte) error {
	packet := proto.AuthPacket{Scheme: scheme, Auth: auth}
	_, err := c.do(ctx, proto.OpAuth, "", packet.Append(nil))
	return err
}
