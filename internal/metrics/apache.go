package metrics

// apacheMetrics are the counters and summaries of Apache ZooKeeper 3.9.5 with
// what they stand for here. mntr prints each of them whether or not a room
// measures it, because monitoring agents alarm on missing keys. Which of them
// are measured, and by what, is the table in docs/metrics.md.
var apacheMetrics = []Desc{
	// Connections.
	{"bytes_received_count", "Bytes received from clients, length prefixes included.", KindCounter, false},
	{"connection_request_count", "Connect requests accepted for judgement.", KindCounter, false},
	{"connection_rejected", "Connections refused by a limit on connections.", KindCounter, false},
	{"connection_drop_count", "Client connections closed, by whichever side.", KindCounter, false},
	{"connection_revalidate_count", "Connect requests that brought a session id.", KindCounter, false},
	{"connection_token_deficit", "Tokens missing in the connection throttle at a connect request.", KindSummary, false},
	{"sessionless_connections_expired", "Connections closed because they were silent past their timeout.", KindCounter, false},
	{"stale_sessions_expired", "Sessions that this server proposed to close because they timed out.", KindCounter, false},
	{"cnxn_closed_without_zk_server_running", "Connections closed because the server was not serving.", KindCounter, false},
	{"unsuccessful_handshake", "TLS handshakes that failed.", KindCounter, false},
	{"tls_handshake_exceeded", "Connections refused because too many TLS handshakes were under way.", KindCounter, false},
	{"insecure_admin_count", "Connections to the admin server without TLS where TLS is offered.", KindCounter, false},
	{"ensemble_auth_success", "Clients that named this ensemble with the ensemble scheme.", KindCounter, false},
	{"ensemble_auth_fail", "Clients that named another ensemble with the ensemble scheme.", KindCounter, false},
	{"ensemble_auth_skip", "Clients whose ensemble name was not checked because none is configured.", KindCounter, false},
	{"netty_queued_buffer_capacity", "Capacity in bytes of the receive buffer of a throttled Netty connection.", KindSummary, false},
	{"socket_closing_time", "Milliseconds to close a socket between servers.", KindSummary, false},
	{"response_bytes", "Bytes of reply bodies to reads, without headers.", KindCounter, false},
	{"watch_bytes", "Bytes of watch notifications sent.", KindCounter, false},

	// Requests.
	{"readlatency", "Milliseconds from receipt to reply of a read.", KindAdvancedSummary, false},
	{"updatelatency", "Milliseconds from receipt to reply of a write.", KindAdvancedSummary, false},
	{"read_per_namespace", "Bytes of path and data of reads, by first path component.", KindSummary, true},
	{"write_per_namespace", "Bytes of path and data of writes, by first path component.", KindSummary, true},
	{"quota_exceeded_error_per_namespace", "Writes that met a quota, by first path component.", KindCounter, true},
	{"throttled_ops", "Requests refused because they waited too long for the request throttle.", KindCounter, false},
	{"request_throttle_wait_count", "Requests that had to wait for the request throttle.", KindCounter, false},
	{"request_throttle_queue_time_ms", "Milliseconds that a request waited for the request throttle.", KindAdvancedSummary, false},
	{"stale_requests", "Requests found stale: their connection was gone or they were too old.", KindCounter, false},
	{"stale_requests_dropped", "Stale requests that were dropped unanswered.", KindCounter, false},
	{"stale_replies", "Replies not sent because their connection was gone.", KindCounter, false},
	{"large_requests_rejected", "Requests refused by the limit on large requests.", KindCounter, false},
	{"response_packet_cache_hits", "Replies to getData served from the cache of encoded replies.", KindCounter, false},
	{"response_packet_cache_misses", "Replies to getData that were not in the cache of encoded replies.", KindCounter, false},
	{"response_packet_get_children_cache_hits", "Replies to getChildren served from the cache of encoded replies.", KindCounter, false},
	{"response_packet_get_children_cache_misses", "Replies to getChildren that were not in the cache of encoded replies.", KindCounter, false},

	// Watches.
	{"node_created_watch_count", "Watches fired by the creation of a node.", KindSummary, false},
	{"node_deleted_watch_count", "Watches fired by the deletion of a node.", KindSummary, false},
	{"node_changed_watch_count", "Watches fired by a change of a node's data.", KindSummary, false},
	{"node_children_watch_count", "Watches fired by a change of a node's children.", KindSummary, false},
	{"dead_watchers_queued", "Closed connections queued for the lazy removal of their watches.", KindCounter, false},
	{"dead_watchers_cleared", "Closed connections whose watches were removed lazily.", KindCounter, false},
	{"dead_watchers_cleaner_latency", "Milliseconds of a lazy removal of watches.", KindAdvancedSummary, false},
	{"add_dead_watcher_stall_time", "Milliseconds waited for a full queue of lazy removals.", KindCounter, false},

	// The way of a write.
	{"prep_processor_queue_time_ms", "Milliseconds that a request waited before it was prepared.", KindAdvancedSummary, false},
	{"prep_processor_queue_size", "Requests waiting to be prepared.", KindSummary, false},
	{"prep_processor_request_queued", "Requests queued to be prepared.", KindCounter, false},
	{"prep_process_time", "Milliseconds to prepare a request.", KindSummary, false},
	{"proposal_process_time", "Milliseconds to hand a prepared request on.", KindSummary, false},
	{"close_session_prep_time", "Milliseconds to prepare the closing of a session.", KindAdvancedSummary, false},
	{"outstanding_changes_queued", "Speculative changes noted while preparing.", KindCounter, false},
	{"outstanding_changes_removed", "Speculative changes dropped after they were applied.", KindCounter, false},
	{"sync_processor_request_queued", "Writes queued for the log.", KindCounter, false},
	{"sync_processor_queue_size", "Writes waiting for the log when a batch begins.", KindSummary, false},
	{"sync_processor_queue_time_ms", "Milliseconds that a write waited for the log.", KindAdvancedSummary, false},
	{"sync_processor_batch_size", "Writes in a batch that is synced together.", KindSummary, false},
	{"sync_processor_queue_flush_time_ms", "Milliseconds to write and sync a batch.", KindAdvancedSummary, false},
	{"sync_processor_queue_and_flush_time_ms", "Milliseconds from queueing a write to the end of its sync.", KindAdvancedSummary, false},
	{"sync_process_time", "Milliseconds to hand a write to the log.", KindSummary, false},
	{"request_commit_queued", "Committed writes queued to be applied.", KindCounter, false},
	{"commit_commit_proc_req_queued", "Committed writes waiting to be applied.", KindSummary, false},
	{"read_commit_proc_req_queued", "Reads waiting behind writes of their session.", KindSummary, false},
	{"write_commit_proc_req_queued", "Writes waiting for their commit.", KindSummary, false},
	{"read_commit_proc_issued", "Reads started in one round of the commit stage.", KindSummary, false},
	{"write_commit_proc_issued", "Writes applied in one round of the commit stage.", KindSummary, false},
	{"read_commitproc_time_ms", "Milliseconds that a read waited in the commit stage.", KindAdvancedSummary, false},
	{"write_commitproc_time_ms", "Milliseconds that a write waited in the commit stage.", KindAdvancedSummary, false},
	{"local_write_committed_time_ms", "Milliseconds from the commit of a write made here to its apply.", KindAdvancedSummary, false},
	{"server_write_committed_time_ms", "Milliseconds from the commit of a write made elsewhere to its apply.", KindAdvancedSummary, false},
	{"commit_process_time", "Milliseconds of one round of the commit stage.", KindSummary, false},
	{"read_final_proc_time_ms", "Milliseconds to carry out a read.", KindAdvancedSummary, false},
	{"write_final_proc_time_ms", "Milliseconds to apply a write.", KindAdvancedSummary, false},
	{"requests_in_session_queue", "Requests of a session that wait behind its write.", KindSummary, false},
	{"pending_session_queue_size", "Sessions with a waiting write.", KindSummary, false},
	{"reads_after_write_in_session_queue", "Reads that waited directly behind a write of their session.", KindSummary, false},
	{"reads_issued_from_session_queue", "Waiting reads released by one round of applies.", KindSummary, false},
	{"session_queues_drained", "Sessions whose waiting reads were released by one round of applies.", KindSummary, false},
	{"time_waiting_empty_pool_in_commit_processor_read_ms", "Milliseconds that the commit stage waited for reads to end before a write.", KindSummary, false},
	{"write_batch_time_in_commit_processor", "Milliseconds of the writes of one round of the commit stage.", KindSummary, false},
	{"concurrent_request_processing_in_commit_processor", "Requests under way at once in the commit stage.", KindSummary, false},
	{"requests_not_forwarded_to_commit_processor", "Requests that skipped the commit stage.", KindCounter, false},

	// Storage.
	{"fsynctime", "Milliseconds of a sync of the log.", KindSummary, false},
	{"snapshottime", "Milliseconds to write a snapshot.", KindSummary, false},
	{"snapshot_error_count", "Snapshots asked for by an operator that failed.", KindCounter, false},
	{"snapshot_rate_limited_count", "Snapshots asked for by an operator and refused for coming too soon.", KindCounter, false},
	{"restore_time", "Milliseconds to restore a snapshot given by an operator.", KindSummary, false},
	{"restore_error_count", "Restores asked for by an operator that failed.", KindCounter, false},
	{"restore_rate_limited_count", "Restores asked for by an operator and refused for coming too soon.", KindCounter, false},
	{"dbinittime", "Milliseconds to load the state at start.", KindSummary, false},
	{"startup_snap_load_time", "Milliseconds to load the snapshot at start.", KindSummary, false},
	{"startup_txns_loaded", "Log records applied at start.", KindSummary, false},
	{"startup_txns_load_time", "Milliseconds to apply the log at start.", KindSummary, false},
	{"digest_mismatches_count", "Times that the state differed from what a digest says.", KindCounter, false},
	{"unrecoverable_error_count", "Errors after which the server gives up.", KindCounter, false},
	{"jvm_pause_time_ms", "Milliseconds that the whole process stood still.", KindAdvancedSummary, false},

	// Ensemble.
	{"election_time", "Milliseconds of an election.", KindSummary, false},
	{"looking_count", "Times that this server began to look for a leader.", KindCounter, false},
	{"unavailable_time", "Milliseconds between two times of serving.", KindSummary, false},
	{"leader_unavailable_time", "Milliseconds without serving of a server that then led.", KindSummary, false},
	{"quit_leading_due_to_disloyal_voter", "Times that leading ended because a voter left.", KindCounter, false},
	{"proposal_count", "Proposals made by this leader.", KindCounter, false},
	{"commit_count", "Commits made by this leader.", KindCounter, false},
	{"proposal_latency", "Milliseconds from a request to its proposal on a follower.", KindAdvancedSummary, false},
	{"proposal_ack_creation_latency", "Milliseconds from a request to its acknowledgement on a server.", KindAdvancedSummary, false},
	{"quorum_ack_latency", "Milliseconds from a proposal to its quorum of acknowledgements.", KindAdvancedSummary, false},
	{"ack_latency", "Milliseconds from a proposal to its acknowledgement, by server.", KindAdvancedSummary, true},
	{"commit_propagation_latency", "Milliseconds from a request to its commit on a learner.", KindAdvancedSummary, false},
	{"propagation_latency", "Milliseconds from a request's arrival at its server to its apply at another.", KindAdvancedSummary, false},
	{"learner_proposal_received_count", "Proposals received from the leader.", KindCounter, false},
	{"learner_commit_received_count", "Commits received from the leader.", KindCounter, false},
	{"learner_request_processor_queue_size", "Requests waiting to be sent to the leader.", KindSummary, false},
	{"skip_learner_request_to_next_processor_count", "Requests of a learner that were not sent to the leader.", KindCounter, false},
	{"learner_handler_qp_size", "Packets waiting for a learner, by server.", KindSummary, true},
	{"learner_handler_qp_time_ms", "Milliseconds that a packet waited for a learner, by server.", KindAdvancedSummary, true},
	{"follower_sync_time", "Milliseconds that a follower took to catch up with the leader.", KindSummary, false},
	{"observer_sync_time", "Milliseconds that an observer took to catch up with the leader.", KindSummary, false},
	{"diff_count", "Learners brought up to date by the log.", KindCounter, false},
	{"snap_count", "Learners brought up to date by a snapshot.", KindCounter, false},
	{"inflight_diff_count", "Learners being brought up to date by the log.", KindSummary, false},
	{"inflight_snap_count", "Learners being brought up to date by a snapshot.", KindSummary, false},
	{"revalidate_count", "Sessions that learners asked the leader to confirm.", KindCounter, false},
	{"om_proposal_process_time_ms", "Milliseconds to pass a proposal on to observers.", KindAdvancedSummary, false},
	{"om_commit_process_time_ms", "Milliseconds to pass a commit on to observers.", KindAdvancedSummary, false},
}

// ApacheMetrics returns the catalogue of Apache's counters and summaries.
// Gauges are not in it.
func ApacheMetrics() []Desc { return append([]Desc(nil), apacheMetrics...) }

// Complete declares every metric of the catalogue that no room has declared,
// so that mntr shows it, with zeros.
func Complete(r *Registry) {
	for _, d := range apacheMetrics {
		switch {
		case d.Kind == KindCounter && d.Keyed:
			r.CounterSet(d.Name, d.Help)
		case d.Kind == KindCounter:
			r.Counter(d.Name, d.Help)
		case d.Kind == KindSummary && d.Keyed:
			r.SummarySet(d.Name, d.Help)
		case d.Kind == KindSummary:
			r.Summary(d.Name, d.Help)
		case d.Keyed:
			r.AdvancedSummarySet(d.Name, d.Help)
		default:
			r.AdvancedSummary(d.Name, d.Help)
		}
	}
}
