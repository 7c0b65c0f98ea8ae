//go:build !race

package zktest_test

// underRace says that everything takes many times as long.
const underRace = false
