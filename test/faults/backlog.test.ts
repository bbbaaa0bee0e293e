import fs from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { withStore } from '../support/add-checker.ts';
import { startFleet, type Fleet } from '../support/fleet.ts';
import { canStartRedis } from '../support/redis.ts';
import type { ServiceProcess } from '../support/running-service.ts';

const ROWS = 1_000_000;
/** A guard against hanging, ten times what is expected. */
const MAX_READY_MS = 10_000;
/** Two queues of 32 jobs, each filled by the API and two workers, and some keys of BullMQ's own. */
const MAX_REDIS_KEYS = 2 * 32 * 3 + 100;
const ADDS = 200;

describe.skipIf(!canStartRedis())('a ledger of a million waiting rows', () => {
  test('costs neither the start nor adds nor Redis more than a short one', async () => {
    const fleet = await startFleet({ settings: { OM_MAX_BACKLOG: String(2 * ROWS) } });
    const empty = await timeAdds(fleet.api, 'before');
    await fleet.api.end('SIGTERM');
    seedBacklog(fleet.folder);

    const startedAt = performance.now();
    await fleet.spawnApi().ready;
    expect((await fleet.api.request('GET', '/ready')).status).toBe(200);
    const readyMs = performance.now() - startedAt;
    expect(readyMs).toBeLessThan(MAX_READY_MS);
    const alone = await timeAdds(fleet.api, 'with a backlog');
    const lone = await readRedis(fleet);
    expect(lone.keys).toBeLessThan(MAX_REDIS_KEYS);

    const workers = await Promise.all([fleet.worker(), fleet.worker()]);
    await expect.poll(() => countDone(fleet.folder), { timeout: 120_000 }).toBeGreaterThan(2_000);
    const busy = await timeAdds(fleet.api, 'while workers are busy');
    const connection = fleet.redis.connect();
    await connection.flushall();
    connection.disconnect();
    const doneAtFlush = countDone(fleet.folder);
    const flushed = await timeAdds(fleet.api, 'after a flush');
    await expect.poll(() => countDone(fleet.folder), { timeout: 120_000 }).toBeGreaterThan(doneAtFlush + 2_000);
    await pause(1_000);
    const shared = await readRedis(fleet);
    expect(shared.keys).toBeLessThan(MAX_REDIS_KEYS);

    const memory = [fleet.api, ...workers].map((process) => Math.round(residentBytes(process.pid) / 1024 / 1024));
    console.log(
      `${ROWS} waiting rows: ready in ${readyMs.toFixed(0)} ms; p95 of an add ${empty} ms without them, ${alone} ms with them, ` +
        `${busy} ms while two workers are busy, ${flushed} ms after a flush; keys in Redis ${lone.keys} and ${shared.keys}, ` +
        `its memory ${lone.memory} and ${shared.memory}; RSS of API and workers ${memory.join(', ')} MB`,
    );
  });
});

/** Work that is owed a million times for memories that are there. */
function seedBacklog(folder: string): void {
  withStore(folder, ({ db }) => {
    db.prepare(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${ROWS}), m(lowest, many) AS
         (SELECT min(seq), count(*) FROM memories)
       INSERT INTO jobs (uuid, kind, memory, step, state, priority, run_at, created_at, updated_at)
       SELECT unhex(printf('0000000000007000%016x', i)), 'memory', lowest + i % many, 'encode', 'queued', 1, 1, 1, 1
       FROM n, m`,
    ).run();
  });
}

/** @returns the 95th percentile of interactive adds one after another (ms) */
async function timeAdds(api: ServiceProcess, about: string): Promise<string> {
  const times: number[] = [];
  for (let number = 0; number < ADDS; number++) {
    const startedAt = performance.now();
    const reply = await api.request('POST', '/memory/add', { body: { content: `${about}, number ${number}` } });
    expect(reply.status, reply.text).toBe(202);
    times.push(performance.now() - startedAt);
  }
  times.sort((a, b) => a - b);
  return times[Math.floor(0.95 * times.length)]!.toFixed(1);
}

function countDone(folder: string): number {
  return withStore(
    folder,
    ({ db }) => db.prepare(`SELECT count(*) FROM jobs WHERE finished_at > 0`).pluck().get() as number,
  );
}

async function readRedis({ redis }: Fleet): Promise<{ keys: number; memory: string }> {
  const connection = redis.connect();
  try {
    const memory = /used_memory_human:(\S+)/.exec(await connection.info('memory'))?.[1] ?? '?';
    return { keys: await connection.dbsize(), memory };
  } finally {
    connection.disconnect();
  }
}

function residentBytes(pid: number): number {
  return 1024 * Number(/VmRSS:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}
