// Package faults breaks ensembles of several servers and looks at what their
// clients were told. Servers are real processes; all that they say to each
// other goes through a proxy that can stall, delay, cut and lose. Clients write
// down what they did and what they were answered, and the checks at the end
// compare that with what all servers hold.
//
// It owns the proxy, the schedule of faults, the workload and the checks. It
// knows nothing of a server but its files, ports and log.
//
// Every random choice comes from a seed that is printed; FAULTS_SEED repeats a
// run's schedule, FAULTS_SECONDS makes it longer, FAULTS_SERVERS larger,
// FAULTS_STORE picks one log store, FAULTS_ONLY picks faults by an expression
// that their names match, FAULTS_LOAD_SECONDS makes the full load longer, and
// FAULTS_LOGS names a folder for the servers' logs.
package faults
