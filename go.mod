module github.com/zooraft/zooraft

go 1.26
