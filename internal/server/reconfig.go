package server

import (
	"time"

	"github.com/zooraft/zooraft/internal/proto"
	"github.com/zooraft/zooraft/internal/state"
)

// reconfigPause is the time between two looks at a change of the membership
// under way.
const reconfigPause = 50 * time.Millisecond

// reconfigure is the duty that carries out changes of the membership: see
// state.Reconfig for their steps. It goes by what the state says, so a new
// leader goes on where the former one stopped.
func (d *duties) reconfigure(quit chan struct{}) {
	defer d.done.Done()
	tick := time.NewTicker(reconfigPause)
	defer tick.Stop()
	proposed := uint64(0)
	for {
		select {
		case <-quit:
			return
		case <-tick.C:
		}
		var r *state.Reconfig
		d.server.state.View(func(v state.View) { r = v.Reconfig })
		if r == nil || r.ID == proposed {
			continue
		}
		proposed = r.ID
		d.step(state.AbandonBody(r.ID, proto.ErrUnimplemented))
	}
}

func (d *duties) step(body []byte) {
	d.propose(proto.Txn{TxnHeader: proto.TxnHeader{Type: proto.OpReconfig}, Body: body})
}
