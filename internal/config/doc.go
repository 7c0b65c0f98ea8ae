// Package config turns what an operator wrote into settings the server can
// use: a zoo.cfg read as Apache ZooKeeper 3.9.5 reads it, -Dname=value
// definitions, the environment variables that Apache's start scripts read, the
// four positional arguments, and zooraft's own flags.
//
// It owns the names, defaults, units and limits of every setting, and says of
// each whether it has an effect here, is accepted without one, or is refused.
// It reads files and never writes any: a start that fails here has touched
// nothing. Nothing behind the log may consult a value that comes from this
// package; a switch that changes what apply does is stamped into the entry by
// the leader.
package config
