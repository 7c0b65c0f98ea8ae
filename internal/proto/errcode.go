package proto

import "strconv"

// ErrCode is the err field of a reply header. It is data for the client, not
// a Go error: an expected failure of a request travels as an ErrCode.
type ErrCode int32

// ZooKeeper's error codes that a server sends or a client of ours makes.
const (
	ErrOK                           ErrCode = 0
	ErrSystemError                  ErrCode = -1
	ErrRuntimeInconsistency         ErrCode = -2
	ErrDataInconsistency            ErrCode = -3
	ErrConnectionLoss               ErrCode = -4
	ErrMarshalling                  ErrCode = -5
	ErrUnimplemented                ErrCode = -6
	ErrOperationTimeout             ErrCode = -7
	ErrBadArguments                 ErrCode = -8
	ErrNewConfigNoQuorum            ErrCode = -13
	ErrReconfigInProgress           ErrCode = -14
	ErrAPIError                     ErrCode = -100
	ErrNoNode                       ErrCode = -101
	ErrNoAuth                       ErrCode = -102
	ErrBadVersion                   ErrCode = -103
	ErrNoChildrenForEphemerals      ErrCode = -108
	ErrNodeExists                   ErrCode = -110
	ErrNotEmpty                     ErrCode = -111
	ErrSessionExpired               ErrCode = -112
	ErrInvalidCallback              ErrCode = -113
	ErrInvalidACL                   ErrCode = -114
	ErrAuthFailed                   ErrCode = -115
	ErrSessionMoved                 ErrCode = -118
	ErrNotReadOnly                  ErrCode = -119
	ErrEphemeralOnLocalSession      ErrCode = -120
	ErrNoWatcher                    ErrCode = -121
	ErrRequestTimeout               ErrCode = -122
	ErrReconfigDisabled             ErrCode = -123
	ErrSessionClosedRequireSASLAuth ErrCode = -124
	ErrQuotaExceeded                ErrCode = -125
	ErrThrottledOp                  ErrCode = -127
)

var errNames = map[ErrCode]string{
	ErrOK:                           "ok",
	ErrSystemError:                  "SystemError",
	ErrRuntimeInconsistency:         "RuntimeInconsistency",
	ErrDataInconsistency:            "DataInconsistency",
	ErrConnectionLoss:               "ConnectionLoss",
	ErrMarshalling:                  "MarshallingError",
	ErrUnimplemented:                "Unimplemented",
	ErrOperationTimeout:             "OperationTimeout",
	ErrBadArguments:                 "BadArguments",
	ErrNewConfigNoQuorum:            "NewConfigNoQuorum",
	ErrReconfigInProgress:           "ReconfigInProgress",
	ErrAPIError:                     "APIError",
	ErrNoNode:                       "NoNode",
	ErrNoAuth:                       "NoAuth",
	ErrBadVersion:                   "BadVersion",
	ErrNoChildrenForEphemerals:      "NoChildrenForEphemerals",
	ErrNodeExists:                   "NodeExists",
	ErrNotEmpty:                     "Directory not empty",
	ErrSessionExpired:               "Session expired",
	ErrInvalidCallback:              "Invalid callback",
	ErrInvalidACL:                   "InvalidACL",
	ErrAuthFailed:                   "AuthFailed",
	ErrSessionMoved:                 "Session moved",
	ErrNotReadOnly:                  "Not a read-only call",
	ErrEphemeralOnLocalSession:      "Ephemeral node on local session",
	ErrNoWatcher:                    "No such watcher",
	ErrRequestTimeout:               "Request timeout",
	ErrReconfigDisabled:             "Reconfig is disabled",
	ErrSessionClosedRequireSASLAuth: "Session closed because client failed to authenticate",
	ErrQuotaExceeded:                "Quota has exceeded",
	ErrThrottledOp:                  "Op throttled due to high load",
}

// String returns the text that ZooKeeper's Java client prints after
// "KeeperErrorCode = ".
func (e ErrCode) String() string {
	if n, ok := errNames[e]; ok {
		return n
	}
	return "Unknown error " + strconv.Itoa(int(e))
}
