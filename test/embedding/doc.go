// Package embedding runs the examples of docs/testing.md in their own languages:
// a JUnit 5 extension with Curator, a pytest fixture with kazoo, a module for
// Node's test runner. Each is a file that a user copies and keeps.
package embedding
