// Package ensemble runs several server processes: the same questions to
// Apache's and to ours where both must answer alike (changes of the membership,
// local sessions, read-only mode), and on ours alone what needs faults.
package ensemble
