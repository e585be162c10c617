// SPDX-License-Identifier: Apache-2.0
// node_redlock.mjs URL [URL URL]: takes and releases locks of node-redlock as its standard input says; redis_py.py describes the
// lines. KIND is `one`, for the first server, or `quorum`, for all.
import { spawnSync } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import Redis from 'ioredis';
import Redlock from 'redlock';

const RETRY_MS = 100;
const [urls, job] = process.argv[3] === '--' ? [[process.argv[2]], process.argv.slice(4)] : [process.argv.slice(2), null];
const clients = urls.map((url) => new Redis(url));
// Its own retries keep what a refused attempt got on a minority of the servers, and do not count it in the next attempt. Two
// clients can so block each other until the lease ends (seen with 5.0.0-beta.2). So each attempt is a call.
const settings = { retryCount: 0 };
const redlocks = { one: new Redlock(clients.slice(0, 1), settings), quorum: new Redlock(clients, settings) };
const held = new Map(); // "THREAD KIND KEY" -> Lock
const busy = new Map(); // THREAD -> the end of what it was told last

for (const redlock of Object.values(redlocks)) {
  redlock.on('error', () => {}); // each refusal of a server is an event as well
}

const now = () => process.hrtime.bigint();

const attempt = async (name, kind, key, lease) => {
  try {
    held.set(name, await redlocks[kind].acquire([key], Number(lease)));
    return true;
  } catch (problem) {
    if (problem.constructor.name !== 'ExecutionError') {
      throw problem;
    }
    return false;
  }
};

const verbs = {
  async lock(name, kind, key, wait, lease) {
    const end = Date.now() + Number(wait);
    while (!(await attempt(name, kind, key, lease))) {
      if (Date.now() >= end) {
        return 'busy';
      }
      await setTimeout(RETRY_MS * (0.5 + Math.random()));
    }
    return 'held';
  },
  async extend(name, kind, key, lease) {
    held.set(name, await held.get(name).extend(Number(lease)));
    return 'extended';
  },
  async unlock(name) {
    const before = now();
    await held.get(name).release();
    return `released ${before}`;
  },
};

async function answer(number, thread, verb, kind, key, ...args) {
  let text;
  try {
    text = await verbs[verb](`${thread} ${kind} ${key}`, kind, key, ...args);
  } catch (problem) {
    text = `error ${problem.constructor.name} ${problem.message}`;
  }
  console.log(number, String(now()), text);
}

async function runJob([key, ...command]) {
  await verbs.lock('job', 'one', key, 3600000, 60000);
  const { status } = spawnSync(command[0], command.slice(1), { stdio: 'inherit' });
  await verbs.unlock('job');
  process.exit(status);
}

if (job) {
  await runJob(job);
}
console.log(0, String(now()), 'ready');
createInterface({ input: process.stdin })
  .on('line', (line) => {
    const words = line.split(' ');
    busy.set(words[1], Promise.resolve(busy.get(words[1])).then(() => answer(...words)));
  })
  .on('close', () => process.exit());
