// Package reconfig runs changes of the membership on several server processes:
// the same ones on Apache's and on ours, and on ours alone what needs faults.
package reconfig
