// Package allocations holds how often the hot paths may allocate, and what a write
// takes of the log. What it counts does not depend on the machine's speed, so it
// can pass or fail where a time may not. It is a suite of its own because the race
// detector, under which the rooms are tested, allocates too.
//
// A figure that has become smaller may be written down here; one that has become
// larger is a regression, or a change that says why in its commit.
package allocations
