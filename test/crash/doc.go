// Package crash holds the tests that kill, starve and damage a zooraft process
// and then ask it for every write that it had acknowledged.
package crash
