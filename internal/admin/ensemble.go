package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// EnsembleServer is a Server that is a member of an ensemble, or could be.
type EnsembleServer interface {
	// Ensemble tells who the members are; ErrNoEnsemble for a server alone.
	Ensemble() (EnsembleStatus, error)
	// TransferLeadership hands leadership to another participant, to any for -1.
	TransferLeadership(to int64) error
	// RemoveMember removes a member that does not answer.
	RemoveMember(id int64) error
}

// ErrNoEnsemble is returned by a server alone.
var ErrNoEnsemble = errors.New("admin: this server is alone, no member of an ensemble")

// ErrRefused is returned when the server cannot do what it was asked; the text
// is the server's.
var ErrRefused = errors.New("admin: the server refused")

// EnsembleStatus is what one server knows of its ensemble.
type EnsembleStatus struct {
	// Server answers; Leader leads, -1 if none is known.
	Server int64 `json:"server"`
	Leader int64 `json:"leader"`
	// Cluster names the ensemble, empty before it is formed.
	Cluster string           `json:"cluster"`
	Members []EnsembleMember `json:"members"`
	// Settled says that the members are those that are wanted. WaitsFor says at
	// the leader what keeps it from the next change.
	Settled  bool   `json:"settled"`
	WaitsFor string `json:"waits_for,omitempty"`
	// CommandLevel is in force; see docs/operations.md, Upgrading. LevelWaitsFor
	// are, at the leader, the servers that keep it from what the leader supports:
	// older ones, and those that do not follow.
	CommandLevel  int   `json:"command_level"`
	LevelWaitsFor []int `json:"command_level_waits_for,omitempty"`
	// Warning and Reason are those of Health.
	Warning string `json:"warning,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// EnsembleMember is one member, or a server that is to be one.
type EnsembleMember struct {
	ID      int64  `json:"id"`
	Address string `json:"address"`
	// Role is what it is now, "participant", "observer" or "none"; Wanted is
	// what it is to be.
	Role   string `json:"role"`
	Wanted string `json:"wanted"`
	// Follows says, at the leader, that the member is in touch.
	Follows bool `json:"follows"`
}

func (a *Admin) handleEnsemble(mux *http.ServeMux) {
	server, ok := a.server.(EnsembleServer)
	if !ok {
		return
	}
	refuse := func(w http.ResponseWriter, err error) { http.Error(w, err.Error(), http.StatusConflict) }
	mux.HandleFunc("GET /ensemble", func(w http.ResponseWriter, _ *http.Request) {
		s, err := server.Ensemble()
		if err != nil {
			refuse(w, err)
			return
		}
		writeJSON(w, http.StatusOK, s)
	})
	change := func(parameter string, absent int64, do func(int64) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			id := absent
			if text := r.URL.Query().Get(parameter); text != "" || absent == 0 {
				var err error
				if id, err = strconv.ParseInt(text, 10, 64); err != nil {
					http.Error(w, "?"+parameter+"=NUMBER is missing or no number", http.StatusBadRequest)
					return
				}
			}
			if err := do(id); err != nil {
				refuse(w, err)
				return
			}
			w.WriteHeader(http.StatusNoContent)
		}
	}
	mux.HandleFunc("POST /ensemble/transfer", change("to", -1, server.TransferLeadership))
	mux.HandleFunc("POST /ensemble/remove", change("id", 0, server.RemoveMember))
}

// FetchEnsemble asks the server that owns the directory who the members are.
func FetchEnsemble(ctx context.Context, ownDir string) (s EnsembleStatus, err error) {
	response, err := askWell(ctx, ownDir, http.MethodGet, "/ensemble")
	if err != nil {
		return s, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&s); err != nil {
		return s, fmt.Errorf("%w: its answer is not understood: %w", ErrUnreachable, err)
	}
	return s, nil
}

// Transfer makes the server that owns the directory, which must lead, hand over.
func Transfer(ctx context.Context, ownDir string, to int64) error {
	target := "/ensemble/transfer"
	if to >= 0 {
		target += "?to=" + strconv.FormatInt(to, 10)
	}
	return post(ctx, ownDir, target)
}

// Remove makes the server that owns the directory, which must lead, remove a
// dead member.
func Remove(ctx context.Context, ownDir string, id int64) error {
	return post(ctx, ownDir, "/ensemble/remove?id="+strconv.FormatInt(id, 10))
}

func post(ctx context.Context, ownDir, target string) error {
	response, err := askWell(ctx, ownDir, http.MethodPost, target)
	if err == nil {
		_ = response.Body.Close() // it is empty
	}
	return err
}

// askWell is ask for an answer that is no refusal.
func askWell(ctx context.Context, ownDir, method, target string) (*http.Response, error) {
	response, err := ask(ctx, ownDir, method, target)
	if err != nil || response.StatusCode < 300 {
		return response, err
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10)) // what there is of it
	return nil, fmt.Errorf("%w: %s", ErrRefused, strings.TrimSpace(string(text)))
}
