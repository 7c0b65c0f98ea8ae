'use strict';
// Checks run one after another; each prints PASS or FAIL with its name, which
// is what the Go side compares between the servers.

const assert = require('node:assert/strict');

const LIMIT_MS = 30000;

async function run(checks) {
    let failed = 0;
    for (const [name, check] of Object.entries(checks)) {
        let timer;
        const late = new Promise((_, reject) => {
            timer = setTimeout(() => reject(new Error('no end after 30 s')), LIMIT_MS);
        });
        try {
            await Promise.race([check(), late]);
            console.log(`PASS ${name}`);
        } catch (error) {
            failed += 1;
            console.log(`FAIL ${name}: ${String(error && error.stack || error).replace(/\n/g, ' | ')}`);
        } finally {
            clearTimeout(timer);
        }
    }
    process.exit(failed === 0 ? 0 : 1);
}

module.exports = { assert, run };
