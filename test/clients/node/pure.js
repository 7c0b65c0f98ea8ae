'use strict';
// Every call of node-zookeeper-client against the server named as argument.

const { promisify } = require('node:util');
const zookeeper = require('node-zookeeper-client');
const { assert, run } = require('./check');

const { ACL, CreateMode, Event, Exception, Id, Permission, State } = zookeeper;
const address = process.argv[2];

// connect opens a session; each method returns a promise of the callback's values.
async function connect(chroot = '', options = { sessionTimeout: 10000 }) {
    const raw = zookeeper.createClient(address + chroot, options);
    const connected = new Promise((resolve) => raw.once('connected', resolve));
    raw.connect();
    await connected;
    const call = (method) => (...args) => new Promise((resolve, reject) => {
        raw[method](...args, (error, ...values) => (error ? reject(error) : resolve(values)));
    });
    const client = { raw };
    for (const method of ['create', 'remove', 'removeRecursive', 'setData', 'getData', 'setACL', 'getACL',
        'exists', 'getChildren', 'listSubTreeBFS', 'mkdirp']) {
        client[method] = call(method);
    }
    client.close = () => new Promise((resolve) => {
        raw.once('disconnected', resolve);
        raw.close();
    });
    return client;
}

async function withClient(body) {
    const client = await connect();
    try {
        return await body(client);
    } finally {
        await client.close();
    }
}

function watching(start) {
    return new Promise((resolve, reject) => start(resolve).catch(reject));
}

async function rejectsWith(code, promise) {
    await assert.rejects(promise, (error) => {
        assert.equal(error.getCode && error.getCode(), code, String(error));
        return true;
    });
}

run({
    'a session has an id, a password and the timeout it asked for': () => withClient(async (c) => {
        assert.equal(c.raw.getState(), State.SYNC_CONNECTED);
        assert.equal(c.raw.getSessionId().length, 8);
        assert.notEqual(c.raw.getSessionId().toString('hex'), '0000000000000000');
        assert.equal(c.raw.getSessionPassword().length, 16);
        assert.equal(c.raw.getSessionTimeout(), 10000);
    }),
    'data comes back as it was written': () => withClient(async (c) => {
        const [path] = await c.create('/pure-data', Buffer.from([0, 1, 255]));
        assert.equal(path, '/pure-data');
        const [data, stat] = await c.getData('/pure-data');
        assert.deepEqual([...data], [0, 1, 255]);
        assert.equal(stat.version, 0);
        assert.equal(stat.dataLength, 3);
        const [after] = await c.setData('/pure-data', Buffer.from('new'), 0);
        assert.equal(after.version, 1);
        await rejectsWith(Exception.BAD_VERSION, c.setData('/pure-data', Buffer.from('x'), 7));
        await rejectsWith(Exception.BAD_VERSION, c.remove('/pure-data', 9));
        await c.remove('/pure-data', 1);
        assert.deepEqual(await c.exists('/pure-data'), [null]);
    }),
    'no data and empty data stay apart': () => withClient(async (c) => {
        await c.create('/pure-none');
        await c.create('/pure-empty', Buffer.alloc(0));
        assert.equal((await c.getData('/pure-none'))[0], undefined);
        assert.equal((await c.getData('/pure-empty'))[0].length, 0);
        await c.remove('/pure-none');
        await c.remove('/pure-empty');
    }),
    'the errors of create and remove': () => withClient(async (c) => {
        await c.create('/pure-errors');
        await rejectsWith(Exception.NODE_EXISTS, c.create('/pure-errors'));
        await rejectsWith(Exception.NO_NODE, c.create('/pure-errors/a/b'));
        await c.create('/pure-errors/a');
        await rejectsWith(Exception.NOT_EMPTY, c.remove('/pure-errors'));
        await rejectsWith(Exception.NO_NODE, c.remove('/pure-errors/b'));
        await rejectsWith(Exception.NO_NODE, c.getData('/pure-errors/b'));
        await rejectsWith(Exception.NO_NODE, c.getChildren('/pure-errors/b'));
        await c.create('/pure-errors/e', CreateMode.EPHEMERAL);
        await rejectsWith(Exception.NO_CHILDREN_FOR_EPHEMERALS, c.create('/pure-errors/e/f'));
        await c.removeRecursive('/pure-errors');
        assert.deepEqual(await c.exists('/pure-errors'), [null]);
    }),
    'sequential nodes count up': () => withClient(async (c) => {
        await c.create('/pure-seq');
        for (let i = 0; i < 5; i += 1) {
            const mode = i % 2 === 0 ? CreateMode.PERSISTENT_SEQUENTIAL : CreateMode.EPHEMERAL_SEQUENTIAL;
            const [path] = await c.create('/pure-seq/n-', Buffer.from(String(i)), mode);
            assert.equal(path, `/pure-seq/n-000000000${i}`);
        }
        const [children, stat] = await c.getChildren('/pure-seq');
        assert.equal(children.length, 5);
        assert.equal(stat.cversion, 5);
        await c.removeRecursive('/pure-seq');
    }),
    'an ephemeral node goes with its session': () => withClient(async (c) => {
        const owner = await connect();
        await owner.create('/pure-gone', CreateMode.EPHEMERAL);
        const [stat] = await c.exists('/pure-gone');
        assert.equal(stat.ephemeralOwner.toString('hex'), owner.raw.getSessionId().toString('hex'));
        const event = await watching(async (fire) => {
            await c.exists('/pure-gone', fire);
            await owner.close();
        });
        assert.equal(event.getType(), Event.NODE_DELETED);
        assert.equal(event.getPath(), '/pure-gone');
    }),
    'a watch of exists sees the creation': () => withClient(async (c) => {
        const event = await watching(async (fire) => {
            assert.deepEqual(await c.exists('/pure-watch', fire), [null]);
            await c.create('/pure-watch');
        });
        assert.equal(event.getType(), Event.NODE_CREATED);
    }),
    'a watch of getData sees the change': () => withClient(async (c) => {
        const event = await watching(async (fire) => {
            await c.getData('/pure-watch', fire);
            await c.setData('/pure-watch', Buffer.from('1'));
        });
        assert.equal(event.getType(), Event.NODE_DATA_CHANGED);
    }),
    'a watch of getChildren sees the child': () => withClient(async (c) => {
        const event = await watching(async (fire) => {
            await c.getChildren('/pure-watch', fire);
            await c.create('/pure-watch/child');
        });
        assert.equal(event.getType(), Event.NODE_CHILDREN_CHANGED);
        await c.removeRecursive('/pure-watch');
    }),
    'mkdirp and a walk': () => withClient(async (c) => {
        await c.mkdirp('/pure-tree/a/b/c', Buffer.from('leaf'));
        await c.mkdirp('/pure-tree/a/d');
        assert.deepEqual((await c.getChildren('/pure-tree/a'))[0].sort(), ['b', 'd']);
        assert.equal(String((await c.getData('/pure-tree/a/b/c'))[0]), 'leaf');
        const [paths] = await c.listSubTreeBFS('/pure-tree/a/b');
        assert.deepEqual(paths.sort(), ['/pure-tree/a/b', '/pure-tree/a/b/c']);
        for (const path of ['/pure-tree/a/b/c', '/pure-tree/a/b', '/pure-tree/a/d', '/pure-tree/a', '/pure-tree']) {
            await c.remove(path);
        }
    }),
    'a chroot is invisible': () => withClient(async (c) => {
        await c.create('/pure-root');
        const inner = await connect('/pure-root');
        assert.deepEqual(await inner.create('/x'), ['/x']);
        await inner.close();
        assert.notEqual((await c.exists('/pure-root/x'))[0], null);
        await c.removeRecursive('/pure-root');
    }),
    'only the owner reads a node of its own': () => withClient(async (c) => {
        c.raw.addAuthInfo('digest', Buffer.from('user:secret'));
        const own = [new ACL(Permission.ALL, new Id('auth', ''))];
        await c.create('/pure-acl', Buffer.from('hidden'), own);
        const [acls] = await c.getACL('/pure-acl');
        assert.equal(acls[0].id.scheme, 'digest');
        assert.match(acls[0].id.id, /^user:.{28}$/);
        assert.equal(String((await c.getData('/pure-acl'))[0]), 'hidden');
        await withClient(async (other) => {
            await rejectsWith(Exception.NO_AUTH, other.getData('/pure-acl'));
            await rejectsWith(Exception.NO_AUTH, other.setData('/pure-acl', Buffer.from('x')));
        });
        const open = [new ACL(Permission.READ | Permission.ADMIN, new Id('world', 'anyone'))];
        await c.setACL('/pure-acl', open, -1);
        await withClient(async (other) => {
            assert.equal(String((await other.getData('/pure-acl'))[0]), 'hidden');
            await rejectsWith(Exception.NO_AUTH, other.setData('/pure-acl', Buffer.from('x')));
        });
        await rejectsWith(Exception.INVALID_ACL, c.create('/pure-bad', [new ACL(31, new Id('nosuch', 'x'))]));
        await c.remove('/pure-acl');
    }),
    'a transaction is all or nothing': () => withClient(async (c) => {
        const commit = (transaction) => promisify(transaction.commit.bind(transaction))();
        await c.create('/pure-multi');
        const results = await commit(c.raw.transaction()
            .check('/pure-multi')
            .create('/pure-multi/a', Buffer.from('1'))
            .setData('/pure-multi/a', Buffer.from('2'))
            .create('/pure-multi/b')
            .remove('/pure-multi/b'));
        assert.equal(results.length, 5);
        assert.equal(results[1].path, '/pure-multi/a');
        assert.equal(String((await c.getData('/pure-multi/a'))[0]), '2');
        await rejectsWith(Exception.NO_NODE, commit(c.raw.transaction()
            .create('/pure-multi/c')
            .remove('/pure-multi/nosuch')));
        assert.deepEqual(await c.exists('/pure-multi/c'), [null]);
        await c.removeRecursive('/pure-multi');
    }),
    'a hundred writes answer in order': () => withClient(async (c) => {
        await c.create('/pure-order');
        const versions = await Promise.all(Array.from({ length: 100 }, (_, i) =>
            c.setData('/pure-order', Buffer.from(String(i))).then(([stat]) => stat.version)));
        assert.deepEqual(versions, Array.from({ length: 100 }, (_, i) => i + 1));
        assert.equal(String((await c.getData('/pure-order'))[0]), '99');
        await c.remove('/pure-order');
    }),
});
