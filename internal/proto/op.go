package proto

import "strconv"

// OpCode is the type field of a request header or of a logged command.
type OpCode int32

// ZooKeeper's op codes.
const (
	OpNotification         OpCode = 0
	OpCreate               OpCode = 1
	OpDelete               OpCode = 2
	OpExists               OpCode = 3
	OpGetData              OpCode = 4
	OpSetData              OpCode = 5
	OpGetACL               OpCode = 6
	OpSetACL               OpCode = 7
	OpGetChildren          OpCode = 8
	OpSync                 OpCode = 9
	OpPing                 OpCode = 11
	OpGetChildren2         OpCode = 12
	OpCheck                OpCode = 13
	OpMulti                OpCode = 14
	OpCreate2              OpCode = 15
	OpReconfig             OpCode = 16
	OpCheckWatches         OpCode = 17
	OpRemoveWatches        OpCode = 18
	OpCreateContainer      OpCode = 19
	OpDeleteContainer      OpCode = 20
	OpCreateTTL            OpCode = 21
	OpMultiRead            OpCode = 22
	OpAuth                 OpCode = 100
	OpSetWatches           OpCode = 101
	OpSASL                 OpCode = 102
	OpGetEphemerals        OpCode = 103
	OpGetAllChildrenNumber OpCode = 104
	OpSetWatches2          OpCode = 105
	OpAddWatch             OpCode = 106
	OpWhoAmI               OpCode = 107
	OpCreateSession        OpCode = -10
	OpCloseSession         OpCode = -11
	OpError                OpCode = -1
)

// Op codes of zooraft's own commands. They exist only in the log: a client
// that sends one gets the answer to an unknown op code.
const (
	// OpRenewSession makes a connection the owner of an existing session.
	OpRenewSession OpCode = -1001
	// OpExpireSession closes a session whose time is up, unless it has been
	// renewed since.
	OpExpireSession OpCode = -1002
	// OpRaiseLevel raises the command level of the ensemble.
	OpRaiseLevel OpCode = -1003
)

// Reserved xids. The server only echoes a client's xid, except that the reply
// to a ping always carries XidPing and a notification XidNotification.
const (
	XidNotification int32 = -1
	XidPing         int32 = -2
	XidAuth         int32 = -4
	XidSetWatches   int32 = -8
)

type opInfo struct {
	name     string // as in ZooKeeper's ZooDefs.OpCode
	statName string // as the four-letter word cons prints it in lop
	write    bool   // goes through the log
}

var ops = map[OpCode]opInfo{
	OpNotification:         {"notification", "NOTI", false},
	OpCreate:               {"create", "CREA", true},
	OpDelete:               {"delete", "DELE", true},
	OpExists:               {"exists", "EXIS", false},
	OpGetData:              {"getData", "GETD", false},
	OpSetData:              {"setData", "SETD", true},
	OpGetACL:               {"getACL", "GETA", false},
	OpSetACL:               {"setACL", "SETA", true},
	OpGetChildren:          {"getChildren", "GETC", false},
	OpSync:                 {"sync", "SYNC", true},
	OpPing:                 {"ping", "PING", false},
	OpGetChildren2:         {"getChildren2", "GETC", false},
	OpCheck:                {"check", "CHEC", true},
	OpMulti:                {"multi", "MULT", true},
	OpCreate2:              {"create2", "CREA", true},
	OpReconfig:             {"reconfig", "RECO", true},
	OpCheckWatches:         {"checkWatches", "CHKW", false},
	OpRemoveWatches:        {"removeWatches", "REMW", false},
	OpCreateContainer:      {"createContainer", "CREA", true},
	OpDeleteContainer:      {"deleteContainer", "DELE", true},
	OpCreateTTL:            {"createTTL", "CREA", true},
	OpMultiRead:            {"multiRead", "MLTR", false},
	OpAuth:                 {"auth", "NA", false},
	OpSetWatches:           {"setWatches", "SETW", false},
	OpSASL:                 {"sasl", "NA", false},
	OpGetEphemerals:        {"getEphemerals", "GETE", false},
	OpGetAllChildrenNumber: {"getAllChildrenNumber", "GETACN", false},
	OpSetWatches2:          {"setWatches2", "STW2", false},
	OpAddWatch:             {"addWatch", "ADDW", false},
	OpWhoAmI:               {"whoAmI", "HOMI", false},
	OpCreateSession:        {"createSession", "SESS", true},
	OpCloseSession:         {"closeSession", "CLOS", true},
	OpError:                {"error", "NA", false},
	OpRenewSession:         {"renewSession", "SESS", true},
	OpExpireSession:        {"expireSession", "CLOS", true},
	OpRaiseLevel:           {"raiseLevel", "NA", true},
}

// String returns ZooKeeper's name of the op code, or its number.
func (o OpCode) String() string {
	if i, ok := ops[o]; ok {
		return i.name
	}
	return "unknown " + strconv.Itoa(int(o))
}

// StatName returns the short form that the four-letter word cons prints as the
// last operation, "NA" where there is none.
func (o OpCode) StatName() string {
	if i, ok := ops[o]; ok {
		return i.statName
	}
	return "NA"
}

// IsWrite tells whether a command of this type goes through the log.
func (o OpCode) IsWrite() bool { return ops[o].write }
