package server

import (
	"net/http"

	"github.com/zooraft/zooraft/internal/metrics"
)

// AdminHandler answers what the local admin channel answers: health, words and
// metrics, without a whitelist.
func (s *Server) AdminHandler() http.Handler { return s.words.Handler() }

// Metrics is the server's registry, complete once Start has returned.
func (s *Server) Metrics() *metrics.Registry { return s.registry }
