// What a service that uses ZooKeeper should be tested for, with npm's
// node-zookeeper-client and Node's own test runner.
'use strict';
const assert = require('node:assert');
const { once } = require('node:events');
const { test } = require('node:test');
const { promisify } = require('node:util');
const zookeeper = require('node-zookeeper-client');
const { startZooraft } = require('./zooraft.js');

const { EPHEMERAL, PERSISTENT_SEQUENTIAL } = zookeeper.CreateMode;

async function connect(t, hosts) {
  const client = zookeeper.createClient(hosts, { sessionTimeout: 30000 });
  const connected = once(client, 'connected');
  client.connect();
  await connected;
  t.after(() => client.close());
  const call = (name) => promisify(client[name]).bind(client);
  return Object.assign(client, {
    create_: call('create'), exists_: call('exists'), children_: call('getChildren'),
  });
}

async function start(t, options) {
  const zk = await startZooraft(options);
  t.after(() => zk.stop());
  return zk;
}

test('an expired session takes the registration with it', async (t) => {
  const zk = await start(t);
  const client = await connect(t, zk.hosts);
  await client.create_('/worker', null, EPHEMERAL);
  const expired = once(client, 'expired');
  await zk.expire(client);
  await expired;
  await zk.control('POST', '/wait', { node: '/worker', absent: true });
});

test('a broken connection keeps the lock', async (t) => {
  const zk = await start(t);
  const client = await connect(t, zk.hosts);
  await client.create_('/lock', null, EPHEMERAL);
  const again = once(client, 'disconnected').then(() => once(client, 'connected'));
  await zk.drop(client);
  await again;
  assert.ok(await client.exists_('/lock'));
});

test('a lost answer leaves the write done', async (t) => {
  const zk = await start(t);
  const client = await connect(t, zk.hosts);
  await client.create_('/jobs');
  await zk.inject('create', '/jobs/*', 'loseReply');
  const again = once(client, 'disconnected').then(() => once(client, 'connected'));
  await assert.rejects(client.create_('/jobs/job-', null, PERSISTENT_SEQUENTIAL), /CONNECTION_LOSS/);
  await again;
  // Who tries again now has two jobs.
  assert.equal((await client.children_('/jobs')).length, 1);
});

test('the majority goes on when the leader is cut off', async (t) => {
  const zk = await start(t, { servers: 3 });
  const old = await zk.leader();
  const rest = [1, 2, 3].filter((n) => n !== old);
  const client = await connect(t, rest.map((n) => zk.addresses[n - 1]).join(','));
  await zk.partition([old], rest);
  assert.notEqual(await zk.leader(rest), old);
  await client.create_('/a');
  await zk.heal();
  await zk.control('POST', '/wait', { server: old, node: '/a' });
});
