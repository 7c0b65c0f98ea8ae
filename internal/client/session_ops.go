package client

import (
	"context"
	"errors"

	"github.com/zooraft/zooraft/internal/proto"
)

func (s *Session) serverPath(path string) string { return joinChroot(s.options.Chroot, path) }

// Send sends a request once there is a connection and returns its call, to be
// waited for. Paths in the body are the server's: see ServerPath.
func (s *Session) Send(ctx context.Context, op proto.OpCode, body []byte) (*Call, error) {
	conn, err := s.Ready(ctx)
	if err != nil {
		return nil, err
	}
	return conn.Do(op, body), nil
}

// ServerPath puts the chroot before a path, for the body of Send.
func (s *Session) ServerPath(path string) string { return s.serverPath(path) }

// ClientPath takes the chroot off a path of the server's.
func (s *Session) ClientPath(path string) string { return cutChroot(s.options.Chroot, path) }

// do sends a request, waits, and puts the user's path into a server's error.
func (s *Session) do(ctx context.Context, op proto.OpCode, path string, body []byte, answered func(*Call)) (*proto.Decoder, error) {
	conn, err := s.Ready(ctx)
	if err != nil {
		return nil, err
	}
	call := &Call{Op: op, Body: body, Done: make(chan *Call, 1), answered: answered}
	conn.Go(call)
	reply, err := call.Wait(ctx)
	var server *ServerError
	if errors.As(err, &server) {
		server.Path = path
	}
	if err != nil {
		return nil, err
	}
	return proto.NewDecoder(reply), nil
}

// Create creates a node and returns its path. A TTL above 0, in milliseconds,
// makes it a TTL node; flags is one of proto's Create constants.
func (s *Session) Create(ctx context.Context, request proto.CreateRequest) (string, error) {
	op := CreateOp(&request)
	path := request.Path
	request.Path = s.serverPath(path)
	d, err := s.do(ctx, op, path, request.Append(nil, op), nil)
	if err != nil {
		return "", err
	}
	created := d.String()
	return cutChroot(s.options.Chroot, created), decoded(op, d)
}

// CreateOp returns the op code that a create needs, by its flags.
func CreateOp(request *proto.CreateRequest) proto.OpCode {
	switch request.Flags {
	case proto.CreateContainer:
		return proto.OpCreateContainer
	case proto.CreatePersistentTTL, proto.CreatePersistentSequentialTTL:
		return proto.OpCreateTTL
	}
	return proto.OpCreate
}

// Delete deletes a node; version -1 matches any.
func (s *Session) Delete(ctx context.Context, path string, version int32) error {
	request := proto.PathVersion{Path: s.serverPath(path), Version: version}
	_, err := s.do(ctx, proto.OpDelete, path, request.Append(nil), nil)
	return err
}

// Exists returns a node's stat, and sets a watch if asked, also when the node
// does not exist.
func (s *Session) Exists(ctx context.Context, path string, watch bool) (proto.Stat, error) {
	request := proto.PathWatch{Path: s.serverPath(path), Watch: watch}
	d, err := s.do(ctx, proto.OpExists, path, request.Append(nil), s.watched(watch, func(code proto.ErrCode) {
		switch code {
		case proto.ErrOK:
			s.watches.data[path] = true
		case proto.ErrNoNode:
			s.watches.exist[path] = true
		}
	}))
	if err != nil {
		return proto.Stat{}, err
	}
	stat := d.Stat()
	return stat, decoded(proto.OpExists, d)
}

// watched returns what an answer does to the table of watches; set runs with
// s.mu held.
func (s *Session) watched(watch bool, set func(proto.ErrCode)) func(*Call) {
	if !watch {
		return nil
	}
	return func(call *Call) {
		s.mu.Lock()
		defer s.mu.Unlock()
		set(call.Header.Err)
	}
}

// Get returns a node's data (nil for null) and stat, and sets a watch if asked.
func (s *Session) Get(ctx context.Context, path string, watch bool) ([]byte, proto.Stat, error) {
	request := proto.PathWatch{Path: s.serverPath(path), Watch: watch}
	d, err := s.do(ctx, proto.OpGetData, path, request.Append(nil), s.watched(watch, func(code proto.ErrCode) {
		if code == proto.ErrOK {
			s.watches.data[path] = true
		}
	}))
	if err != nil {
		return nil, proto.Stat{}, err
	}
	data, stat := d.Buffer(), d.Stat()
	return data, stat, decoded(proto.OpGetData, d)
}

// Config returns the ensemble's configuration, which lies outside every
// chroot, with its stat, and sets a watch if asked.
func (s *Session) Config(ctx context.Context, watch bool) ([]byte, proto.Stat, error) {
	request := proto.PathWatch{Path: ConfigPath, Watch: watch}
	d, err := s.do(ctx, proto.OpGetData, ConfigPath, request.Append(nil), s.watched(watch && s.options.Chroot == "", func(code proto.ErrCode) {
		if code == proto.ErrOK {
			s.watches.data[ConfigPath] = true
		}
	}))
	if err != nil {
		return nil, proto.Stat{}, err
	}
	data, stat := d.Buffer(), d.Stat()
	return data, stat, decoded(proto.OpGetData, d)
}

// ConfigPath is the node of the ensemble's configuration.
const ConfigPath = "/zookeeper/config"

// Children returns the names of a node's children in the server's order, and
// sets a watch if asked.
func (s *Session) Children(ctx context.Context, path string, watch bool) ([]string, proto.Stat, error) {
	request := proto.PathWatch{Path: s.serverPath(path), Watch: watch}
	d, err := s.do(ctx, proto.OpGetChildren2, path, request.Append(nil), s.watched(watch, func(code proto.ErrCode) {
		if code == proto.ErrOK {
			s.watches.child[path] = true
		}
	}))
	if err != nil {
		return nil, proto.Stat{}, err
	}
	names, stat := d.Strings(), d.Stat()
	return names, stat, decoded(proto.OpGetChildren2, d)
}

// Set sets a node's data; version -1 matches any.
func (s *Session) Set(ctx context.Context, path string, data []byte, version int32) (proto.Stat, error) {
	request := proto.SetDataRequest{Path: s.serverPath(path), Data: data, Version: version}
	return s.statOf(ctx, proto.OpSetData, path, request.Append(nil))
}

func (s *Session) statOf(ctx context.Context, op proto.OpCode, path string, body []byte) (proto.Stat, error) {
	d, err := s.do(ctx, op, path, body, nil)
	if err != nil {
		return proto.Stat{}, err
	}
	stat := d.Stat()
	return stat, decoded(op, d)
}

// ACL returns a node's access list and stat.
func (s *Session) ACL(ctx context.Context, path string) ([]proto.ACL, proto.Stat, error) {
	d, err := s.do(ctx, proto.OpGetACL, path, proto.AppendString(nil, s.serverPath(path)), nil)
	if err != nil {
		return nil, proto.Stat{}, err
	}
	acls, stat := d.ACLs(), d.Stat()
	return acls, stat, decoded(proto.OpGetACL, d)
}

// SetACL sets a node's access list; version is compared with aversion, -1
// matches any.
func (s *Session) SetACL(ctx context.Context, path string, acls []proto.ACL, version int32) (proto.Stat, error) {
	request := proto.SetACLRequest{Path: s.serverPath(path), ACL: acls, Version: version}
	return s.statOf(ctx, proto.OpSetACL, path, request.Append(nil))
}

// Sync waits until the server has caught up with the leader.
func (s *Session) Sync(ctx context.Context, path string) error {
	_, err := s.do(ctx, proto.OpSync, path, proto.AppendString(nil, s.serverPath(path)), nil)
	return err
}

// Ephemerals returns the session's own ephemerals below a prefix, which the
// server compares as a string and without regard to the chroot, as they come.
func (s *Session) Ephemerals(ctx context.Context, prefix string) ([]string, error) {
	d, err := s.do(ctx, proto.OpGetEphemerals, prefix, proto.AppendString(nil, prefix), nil)
	if err != nil {
		return nil, err
	}
	paths := d.Strings()
	return paths, decoded(proto.OpGetEphemerals, d)
}

// AllChildrenNumber returns how many nodes are below a node.
func (s *Session) AllChildrenNumber(ctx context.Context, path string) (int32, error) {
	d, err := s.do(ctx, proto.OpGetAllChildrenNumber, path, proto.AppendString(nil, s.serverPath(path)), nil)
	if err != nil {
		return 0, err
	}
	n := d.Int()
	return n, decoded(proto.OpGetAllChildrenNumber, d)
}

// WhoAmI returns the identities of the connection, as scheme and user.
func (s *Session) WhoAmI(ctx context.Context) ([]proto.ID, error) {
	d, err := s.do(ctx, proto.OpWhoAmI, "", nil, nil)
	if err != nil {
		return nil, err
	}
	var ids []proto.ID
	for range d.Count(8) {
		ids = append(ids, proto.ID{Scheme: d.String(), ID: d.String()})
	}
	return ids, decoded(proto.OpWhoAmI, d)
}

// Reconfig changes the ensemble and returns its new configuration.
func (s *Session) Reconfig(ctx context.Context, request proto.ReconfigRequest) ([]byte, proto.Stat, error) {
	d, err := s.do(ctx, proto.OpReconfig, "", request.Append(nil), nil)
	if err != nil {
		return nil, proto.Stat{}, err
	}
	data, stat := d.Buffer(), d.Stat()
	return data, stat, decoded(proto.OpReconfig, d)
}

// Multi sends ops as one transaction. When one fails none takes effect, and the
// error is that one's with its path.
func (s *Session) Multi(ctx context.Context, ops []proto.MultiOp) error {
	call, err := s.SendMulti(ctx, ops)
	if err != nil {
		return err
	}
	return s.MultiResult(ctx, call, ops)
}

// SendMulti sends a multi without waiting. The paths are the user's.
func (s *Session) SendMulti(ctx context.Context, ops []proto.MultiOp) (*Call, error) {
	sent := make([]proto.MultiOp, len(ops))
	for i, op := range ops {
		op.Create.Path = s.serverPath(op.Create.Path)
		op.Version.Path = s.serverPath(op.Version.Path)
		op.Data.Path = s.serverPath(op.Data.Path)
		sent[i] = op
	}
	return s.Send(ctx, proto.OpMulti, proto.AppendMulti(nil, sent))
}

// MultiResult waits for a multi and finds the op that failed.
func (s *Session) MultiResult(ctx context.Context, call *Call, ops []proto.MultiOp) error {
	reply, err := call.Wait(ctx)
	if err != nil && len(call.Reply) == 0 {
		return err
	}
	if err != nil {
		reply = call.Reply
	}
	d := proto.NewDecoder(reply)
	for _, op := range ops {
		header := d.MultiHeader()
		if d.Err() != nil || header.Done {
			break
		}
		code := skipResult(d, header)
		if code != proto.ErrOK && code != proto.ErrRuntimeInconsistency {
			return &ServerError{Op: op.Type, Path: multiPath(&op), Code: code}
		}
	}
	if d.Err() != nil {
		return decoded(proto.OpMulti, d)
	}
	return err
}

// skipResult reads over one result of a multi and returns its error code.
func skipResult(d *proto.Decoder, header proto.MultiHeader) proto.ErrCode {
	switch header.Type {
	case proto.OpError:
		return proto.ErrCode(d.Int())
	case proto.OpCreate:
		_ = d.String()
	case proto.OpCreate2, proto.OpCreateTTL, proto.OpCreateContainer:
		_ = d.String()
		d.Stat()
	case proto.OpSetData:
		d.Stat()
	}
	return proto.ErrOK
}

func multiPath(op *proto.MultiOp) string {
	switch op.Type {
	case proto.OpDelete, proto.OpCheck:
		return op.Version.Path
	case proto.OpSetData:
		return op.Data.Path
	}
	return op.Create.Path
}
