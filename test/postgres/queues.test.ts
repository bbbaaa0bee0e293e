/** API nodes and workers over one PostgreSQL and no Redis: BullMQ's queues are in the database, too. */
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { failAt } from '../support/fleet.ts';
import { startPostgres } from '../support/postgres.ts';
import { spawnService, type ServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

const server = await startPostgres();
describe.skipIf(server === undefined)('over PostgreSQL and no Redis', () => {
  afterAll(() => server?.stop());

  test('a worker elsewhere does what a node took in, and both say how the queues are', async () => {
    const { database, start } = await startHere();
    const node = await start('api');
    const port = String(await freePort());
    await start('worker', { OM_WORKER_METRICS_PORT: port });
    await addAll(node, 100, 'xylophoneflavoured canary');
    expect(await node.idle()).toMatchObject({ done: 100, dead: 0 });
    const { body } = await node.request('GET', '/ready');
    expect(body['queues']).toEqual({ mode: 'postgres', queues: 'up' });
    // Whose thread does not answer in two seconds is counted as it was before.
    await expect.poll(() => metricsOf(port)).toMatch(/^cairn_jobs_finished_total\{state="done"\} 100$/m);
    const ofNode = (await node.request('GET', '/metrics')).text;
    for (const text of [ofNode, await metricsOf(port)]) expect(text).toMatch(/^cairn_queues_up 1$/m);
    expect(ofNode).not.toMatch(/^cairn_redis_up /m);
    await expect.poll(() => rowsDispatchedBy(node)).toBe(100);
    expect(ofNode).toMatch(/^cairn_queue_jobs\{queue="encode",state="waiting"\} 0$/m);
    const said = await server!.read(
      database,
      `SELECT 1 FROM ${schemaOf(database)}.event WHERE data::text ~ 'xylophone|Zygmunt'
       UNION ALL SELECT 1 FROM ${schemaOf(database)}.job WHERE job::text ~ 'xylophone|Zygmunt'`,
    );
    expect(said).toEqual([]);
  });

  test('nodes that serve and work hear of what another one took in', async () => {
    const { start } = await startHere();
    const [taking, working] = [await start('api'), await start('serve')];
    await addAll(taking, 50, 'a lamp that is lit at dusk');
    expect(await working.idle()).toMatchObject({ done: 50, dead: 0 });
    // One of them hands out the work of both: mostly the first, and the second where the first was slow to renew that.
    await expect.poll(async () => (await rowsDispatchedBy(taking)) + (await rowsDispatchedBy(working))).toBe(50);
  });

  test.each(['before-encode-commit:kill:1', 'before-ack:kill:2'])(
    'the jobs of a worker that died (%s) are done once, by another',
    async (failpoint) => {
      const { database, start, spawn } = await startHere({ OM_LEASE_MS: '4000' });
      const node = await start('api');
      const doomed = spawn('worker', failAt(failpoint));
      await addAll(node, 300, 'a bridge under repair');
      expect(await doomed.exited, doomed.obituary).toMatchObject({ signal: 'SIGKILL' });
      await start('worker');
      expect(await node.idle()).toMatchObject({ done: 300, dead: 0 });
      await expectOnce(database, 300);
    },
  );

  test('a database that crashes, and one that is silent for long, delays work and nothing else', async () => {
    const { database, start } = await startHere({ OM_LEASE_MS: '2000' });
    const node = await start('api');
    const ports = [String(await freePort()), String(await freePort())];
    const starting = ports.map((port) => start('worker', { OM_WORKER_METRICS_PORT: port }));
    const workers = await Promise.all(starting);
    await addAll(node, 100, 'a letter nobody opened');
    // A process that cannot reach the database while it starts ends. The thread of a worker that answers has started.
    const hasStarted = async (port: string) => (await fetch(`http://localhost:${port}/metrics`)).status === 200;
    for (const port of ports) await expect.poll(() => hasStarted(port)).toBe(true);
    server!.restart();
    await addAll(node, 100, 'a ferry that did not come back');
    server!.pause();
    await pause(8_000);
    server!.resume();
    await addAll(node, 100, 'the last to leave');
    expect(await untilIdle(node)).toMatchObject({ done: 300, dead: 0 });
    await expectOnce(database, 300);
    expect([node, ...workers].map(({ obituary }) => obituary)).toEqual([undefined, undefined, undefined]);
    for (const { log } of [node, ...workers]) expect(JSON.stringify(log)).not.toContain(PASSWORD);
    const ends = await Promise.all([node, ...workers].map((process) => process.end('SIGTERM')));
    expect(ends).toEqual(ends.map(() => ({ code: 0, signal: null })));
  });

  test('emptied queues are filled again from the ledger', async () => {
    const { database, start } = await startHere();
    const node = await start('api');
    await addAll(node, 200, 'a lighthouse without a keeper');
    const schema = schemaOf(database);
    await server!.read(database, `TRUNCATE ${schema}.job, ${schema}.cairn_marks CASCADE`);
    await node.logged('queues_refilled');
    await start('worker');
    expect(await node.idle()).toMatchObject({ done: 200, dead: 0 });
  });
});

/** The server trusts everybody, so that any password will do. */
const PASSWORD = 'a-long-secret';
const schemaOf = (database: string) => `${new URL(database).username}_queue`;

/** An empty database, and a way to start processes over it, each with a folder of its own as on another machine. */
async function startHere(settings: Readonly<Record<string, string>> = {}) {
  const database = (await server!.createSchema()).replace('@', `:${PASSWORD}@`);
  const all = { OM_DATABASE_URL: database, OM_QUERY_THREADS: '1', ...settings };
  const started: ServiceProcess[] = [];
  onTestFinished(async () => void (await Promise.all(started.map((process) => process.end('SIGKILL')))));
  const spawn = (command: 'api' | 'worker' | 'serve', more: Readonly<Record<string, string>> = {}) => {
    const process = spawnService({ folder: tempFolder(), command, settings: { ...all, ...more } });
    started.push(process);
    return process;
  };
  const start = async (...what: Parameters<typeof spawn>) => {
    const process = spawn(...what);
    await process.ready;
    return process;
  };
  return { database, spawn, start };
}

const metricsOf = async (port: string) => (await fetch(`http://localhost:${port}/metrics`)).text();

/** Counts the rows that a node handed out, of which it hears a moment after the queue has them. */
async function rowsDispatchedBy(node: ServiceProcess): Promise<number> {
  const { text } = await node.request('GET', '/metrics');
  return Number(/^cairn_dispatched_rows_total\{step="encode"\} (\d+)$/m.exec(text)?.[1] ?? 0);
}

/** Adds memories in batches, and repeats a batch until it is acknowledged, which stores it once. */
async function addAll(node: ServiceProcess, count: number, about: string): Promise<void> {
  for (let first = 0; first < count; first += 50) {
    const items = Array.from({ length: Math.min(50, count - first) }, (_, n) => ({
      content: `${about} number ${first + n}`,
      user_id: 'Zygmunt',
    }));
    const headers = { 'idempotency-key': `${about} ${first}`.replaceAll(' ', '-') };
    for (;;) {
      const { status } = await node.request('POST', '/memory/add/batch', { body: { items }, headers });
      if (status === 202) break;
      expect(status).toBe(503);
      await pause(200);
    }
  }
}

/** Expects that so many memories are stored, each once, and each with its vectors. */
async function expectOnce(database: string, count: number): Promise<void> {
  const found = await server!.read(
    database,
    `SELECT count(*)::int AS memories, count(DISTINCT content)::int AS contents,
       (SELECT count(DISTINCT memory)::int FROM vectors) AS embedded FROM memories`,
  );
  expect(found).toEqual([{ memories: count, contents: count, embedded: count }]);
}

/** Waits until no job is left, through a time in which the node may not answer. */
async function untilIdle(node: ServiceProcess): Promise<unknown> {
  for (;;) {
    const { status, body } = await node.request('GET', '/jobs?l=1');
    if (status === 200 && body.counts.queued + body.counts.active + body.counts.failed === 0) return body.counts;
    await pause(200);
  }
}
