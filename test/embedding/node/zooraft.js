// ZooKeeper-compatible servers in memory, and faults on demand.
//
//   const zk = await startZooraft();             // or startZooraft({ servers: 3 })
//   const client = zookeeper.createClient(zk.hosts);
//   ...
//   await zk.stop();
//
// The program is found on PATH, or by the environment variable ZOORAFT. It ends
// with this process, however that ends.
'use strict';
const { spawn } = require('node:child_process');
const fs = require('node:fs/promises');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');

async function startZooraft({ servers = 1, flags = [] } = {}) {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'zooraft-'));
  const portFile = path.join(folder, 'ports');
  const child = spawn(process.env.ZOORAFT || 'zooraft', [
    'serve', '--ephemeral', '--servers', String(servers), '--port-file', portFile,
    '--control-port', '0', '--until-stdin-ends', ...flags,
  ], { stdio: ['pipe', 'pipe', 'pipe'] });
  let log = '';
  child.stderr.on('data', (text) => { log += text; });
  const ended = new Promise((resolve) => {
    child.once('error', (error) => { log += error; resolve(); });
    child.once('close', resolve);
  });
  // It says one line when it serves, and nothing if it cannot.
  const serves = new Promise((resolve) => child.stdout.once('data', () => resolve(true)));
  if (!(await Promise.race([serves, ended]))) {
    throw new Error(`zooraft does not start: ${log}`);
  }
  const [clients, controlPort] = (await fs.readFile(portFile, 'utf8')).split('\n');
  const addresses = clients.split(',').map((port) => `127.0.0.1:${port}`);

  // Any request of the control port; GET / there lists them.
  function control(method, requestPath, body) {
    return new Promise((resolve, reject) => {
      const request = http.request({
        host: '127.0.0.1', port: controlPort, method, path: requestPath, headers: { 'Zooraft-Control': '1' }, agent: false,
      }, (answer) => {
        let text = '';
        answer.on('data', (part) => { text += part; });
        answer.on('end', () => (answer.statusCode === 200
          ? resolve(JSON.parse(text))
          : reject(new Error(`${method} ${requestPath}: ${answer.statusCode} ${text}`))));
      });
      request.on('error', reject);
      request.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  const sessionOf = (client) => `0x${client.getSessionId().toString('hex')}`;
  return {
    addresses,
    hosts: addresses.join(','),
    control,
    // The number of the server that leads; waits for one.
    leader: async (among = []) => (await control('GET', `/leader${among.length ? `?among=${among}` : ''}`)).leader,
    partition: (...groups) => control('POST', '/partition', { groups }),
    heal: () => control('POST', '/heal'),
    // Ends a client's session as if it had been silent for too long.
    expire: (client) => control('POST', `/sessions/${sessionOf(client)}/expire`),
    // Breaks a client's connection; its session lives on.
    drop: (client) => control('POST', `/sessions/${sessionOf(client)}/drop`),
    // Does an action to the next request that matches.
    inject: async (op, nodePath, action, more = {}) => (await control('POST', '/faults', { op, path: nodePath, action, ...more })).fault,
    async stop() {
      child.stdin.end();
      await ended;
      await fs.rm(folder, { recursive: true });
    },
  };
}

module.exports = { startZooraft };
