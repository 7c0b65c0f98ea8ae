package faults

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/zooraft/zooraft/internal/proto"
)

// A register is one node: created, set, set at a version, deleted, and read
// behind a sync. Histories are short, because the check's cost grows fast with
// what has no known fate: a new set of nodes begins every registerSpan.
const (
	registerKeys = 3
	registerSpan = 2 * time.Second
)

type registerInput struct {
	op      proto.OpCode // create, setData, delete or getData
	value   string
	version int32 // expected by setData; −1 for any
}

type registerOutput struct {
	known   bool
	code    proto.ErrCode
	value   string
	version int32
}

// registerState is what a node is.
type registerState struct {
	exists  bool
	value   string
	version int32
}

// registerStep is the register's meaning. A request of unknown fate may have
// had its effect, or none: it is open until the end of time, where its effect
// meets nobody.
func registerStep(state registerState, in registerInput, out registerOutput) (bool, registerState) {
	next, code := state, proto.ErrOK
	switch in.op {
	case proto.OpCreate:
		if code = proto.ErrNodeExists; !state.exists {
			code, next = proto.ErrOK, registerState{exists: true, value: in.value}
		}
	case proto.OpSetData:
		switch {
		case !state.exists:
			code = proto.ErrNoNode
		case in.version >= 0 && in.version != state.version:
			code = proto.ErrBadVersion
		default:
			next = registerState{exists: true, value: in.value, version: state.version + 1}
		}
	default: // delete and getData
		if !state.exists {
			code = proto.ErrNoNode
		} else if in.op == proto.OpDelete {
			next = registerState{}
		}
	}
	if !out.known {
		return true, next
	}
	if out.code == proto.ErrSystemError { // a full disk's refusal
		return true, state
	}
	if out.code != code {
		return false, state
	}
	switch {
	case code != proto.ErrOK:
	case in.op == proto.OpSetData && out.version != next.version:
		return false, state
	case in.op == proto.OpGetData && (out.value != state.value || out.version != state.version):
		return false, state
	}
	return true, next
}

// registerModel is registerStep for the checker.
var registerModel = porcupine.Model{
	Init: func() any { return registerState{} },
	Step: func(state, in, out any) (bool, any) {
		ok, next := registerStep(state.(registerState), in.(registerInput), out.(registerOutput))
		return ok, next
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %+v", in, out) },
}

// useRegisters is a worker.
func useRegisters(s *session) {
	w := s.world
	for n := 0; !w.stopped(); n++ {
		key := fmt.Sprintf("/r/%d-%d", w.now()/registerSpan, s.rng.IntN(registerKeys))
		in := registerInput{value: fmt.Sprintf("%d.%d", s.number, n), version: -1}
		var body []byte
		switch r := s.rng.IntN(10); {
		case r < 3:
			in.op, body = proto.OpCreate, createBody(key, []byte(in.value), proto.CreatePersistent)
		case r < 5:
			in.op = proto.OpSetData
			if s.rng.IntN(2) == 0 {
				in.version = int32(s.rng.IntN(3))
			}
			body = setBody(key, []byte(in.value), in.version)
		case r < 6:
			in.op, body = proto.OpDelete, deleteBody(key, -1)
		default:
			in.op, body = proto.OpGetData, readBody(key, false)
		}
		if s.connected() == nil {
			return
		}
		begun := w.now()
		out, sent := s.askRegister(in, body)
		if sent {
			w.noteRegister(key, porcupine.Operation{ClientId: s.number, Input: in, Call: int64(begun), Output: out, Return: int64(w.now())})
		}
		if !w.rest(time.Duration(s.rng.IntN(8)) * time.Millisecond) {
			return
		}
	}
}

// askRegister sends the request, a read behind a sync. sent is false if it
// says nothing about the register.
func (s *session) askRegister(in registerInput, body []byte) (out registerOutput, sent bool) {
	if in.op == proto.OpGetData {
		sync := s.conn.Do(proto.OpSync, syncBody())
		get := s.conn.Do(in.op, body)
		if _, err := s.wait(sync); err != nil {
			return out, false
		}
		call, err := s.wait(get)
		if !known(err) {
			return out, false
		}
		out = registerOutput{known: true, code: call.Header.Err}
		if err == nil {
			d := proto.NewDecoder(call.Reply)
			out.value, out.version = string(d.Buffer()), d.Stat().Version
		}
		return out, true
	}
	call, err := s.do(in.op, body)
	switch {
	case err == errSessionOver || err == errNoConnection:
		return out, false // no effect
	case !known(err):
		return out, true
	}
	out = registerOutput{known: true, code: call.Header.Err}
	if err == nil && in.op == proto.OpSetData {
		out.version = proto.NewDecoder(call.Reply).Stat().Version
	}
	return out, true
}

func (w *world) noteRegister(key string, o porcupine.Operation) {
	if !o.Output.(registerOutput).known {
		o.Return = math.MaxInt64
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes.registers[key] = append(w.notes.registers[key], o)
	w.notes.count("register operations")
}

// checkRegisters looks for an order of each register's operations that
// explains all answers.
func (w *world) checkRegisters() {
	undecided := 0
	for key, history := range w.notes.registers {
		switch porcupine.CheckOperationsTimeout(registerModel, history, 30*time.Second) {
		case porcupine.Illegal:
			w.wrong("%s is not linearizable:\n%s", key, describe(history))
		case porcupine.Unknown:
			w.notes.count("registers left undecided by the checker")
			undecided++
		default:
			w.notes.count("registers found linearizable")
		}
	}
	if all := len(w.notes.registers); 2*undecided > all {
		w.wrong("the checker found no answer for %d of %d registers: the run proves little", undecided, all)
	}
}

func describe(history []porcupine.Operation) string {
	text := ""
	for _, o := range history {
		end := fmt.Sprintf("%.4f", time.Duration(o.Return).Seconds())
		if o.Return == math.MaxInt64 {
			end = "never"
		}
		text += fmt.Sprintf("  client %d from %.4f to %s: %s\n", o.ClientId, time.Duration(o.Call).Seconds(), end,
			registerModel.DescribeOperation(o.Input, o.Output))
	}
	return text
}
