import type { Job } from 'bullmq';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openQueuesToShow, openStepQueues } from '../../../src/engine/adapters/bullmq-queues.ts';
import { openQueueLink } from '../../../src/engine/adapters/open-queue-link.ts';
import type { QueueLink } from '../../../src/engine/adapters/queue-link.ts';
import { QUEUE_NAMES } from '../../../src/engine/jobs.ts';
import type { Logger } from '../../../src/engine/ports.ts';
import { BEGIN_SCHEMA_CHANGE } from '../../../src/engine/store/postgres/migrate-schema.ts';
import { findPrograms, startPostgres, type PostgresServer } from '../../support/postgres.ts';

const roleOf = (database: string) => new URL(database).username;

/** An address that leads to the same schema, but whose links have connections of their own, as in another process. */
const elsewhere = (database: string, process: number) => `${database}?fallback_application_name=${process}`;

/** Keeps a worker from looking by itself, so that it takes only jobs of which it is told. */
const WAITS_TO_BE_TOLD = { drainDelay: 3_600 };

describe.skipIf(findPrograms() === undefined)('queues in PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = (await startPostgres())!;
    // What BullMQ's own way to add jobs in bulk would need.
    await server.read(server.url, 'REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC');
  });
  afterAll(() => server.stop());

  async function openLink(database: string, logger: Logger = createLog().logger): Promise<QueueLink> {
    const link = await openQueueLink({ place: { kind: 'postgres', database }, logger }, { blocking: true });
    onTestFinished(() => link.close());
    return link;
  }

  async function openSteps(database: string) {
    const queues = await openStepQueues({ place: { kind: 'postgres', database }, logger: createLog().logger });
    onTestFinished(() => queues.close());
    return queues;
  }

  const countSessions = async (database: string) => {
    const sql = `SELECT count(*)::int AS n FROM pg_stat_activity WHERE usename = '${roleOf(database)}'`;
    const [row] = (await server.read(database, sql)) as { n: number }[];
    return row!.n;
  };

  test('stand in a schema of their own, which several processes may make at once', async () => {
    const database = await server.createSchema();
    await Promise.all([1, 2, 3, 4].map((process) => openLink(elsewhere(database, process))));
    const tables = await server.read(
      database,
      `SELECT DISTINCT schemaname AS name FROM pg_tables WHERE tableowner = '${roleOf(database)}'`,
    );
    expect(tables).toEqual([{ name: `${roleOf(database)}_queue` }]);
  });

  test('are made once by two processes, of which one comes while the other is about it', async () => {
    const database = await server.createSchema();
    const schema = `${roleOf(database)}_queue`;
    await (await openLink(elsewhere(database, 1))).close();
    const other = new pg.Client(database);
    await other.connect();
    onTestFinished(() => other.end());
    await other.query(`DROP TABLE ${schema}.cairn_marks`);
    await other.query(`${BEGIN_SCHEMA_CHANGE};
      CREATE UNLOGGED TABLE ${schema}.cairn_marks (name text PRIMARY KEY, until timestamptz NOT NULL)`);
    const opening = openLink(database);
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE usename = '${roleOf(database)}' AND wait_event_type = 'Lock'`;
    await expect.poll(async () => (await server.read(database, waiting)).length).toBe(1);
    await other.query('COMMIT');
    expect(await (await opening).setMissingMark('a', null)).toBe(true);
  });

  test('need no right but a schema: a role that may not make it is told how to have it made', async () => {
    const database = await server.createSchema();
    const role = roleOf(database);
    await server.read(database, `REVOKE CREATE ON DATABASE postgres FROM ${role}`);
    await expect(openLink(database)).rejects.toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining(`CREATE SCHEMA "${role}_queue" AUTHORIZATION`) as string,
    });
    await server.read(database, `CREATE SCHEMA ${role}_queue AUTHORIZATION ${role}`);
    const queues = await openSteps(database);
    const job = { name: 'one', bulk: false, payload: { tenant: 'default', jobNos: [1], alone: false }, traces: [] };
    await queues.add('encode', [job]);
    expect(await queues.waiting('encode')).toEqual({ interactive: 1, bulk: 0 });
  });

  test('of one process take three connections at most, and none once they are closed', async () => {
    const database = await server.createSchema();
    const link = await openLink(database);
    const steps = await openSteps(database);
    const board = await openQueuesToShow({ place: { kind: 'postgres', database }, logger: createLog().logger });
    const workers = QUEUE_NAMES.map((name) => link.openWorker(name, async () => {}, {}));
    await Promise.all([steps.haveForgotten(), steps.lead(), steps.counts(), ...board.queues.map((q) => q.count())]);
    await expect.poll(() => listensIn(database)).toBe(true);
    expect(await countSessions(database)).toBe(3);
    board.close();
    await steps.close();
    await Promise.all(workers.map((worker) => worker.close()));
    expect(await countSessions(database)).toBeGreaterThan(0);
    await link.close();
    await expect.poll(() => countSessions(database)).toBe(0);
  });

  const listensIn = async (database: string) => {
    const sql = `SELECT 1 FROM pg_stat_activity WHERE usename = '${roleOf(database)}' AND query LIKE '%LISTEN bullmq_jobs%'`;
    return (await server.read(database, sql)).length > 0;
  };

  test('tell a worker that waits of each job, also once the server has crashed and is back', async () => {
    const database = await server.createSchema();
    const link = await openLink(database);
    const done: string[] = [];
    const worker = link.openWorker('encode', async (job: Job) => void done.push(job.id!), WAITS_TO_BE_TOLD);
    onTestFinished(() => worker.close());
    const queue = link.openQueue('encode');
    await expect.poll(() => listensIn(database)).toBe(true);
    await link.addJobs(queue, [{ name: 'encode', data: {}, opts: { jobId: 'before' } }]);
    await expect.poll(() => done).toEqual(['before']);
    server.restart();
    await expect.poll(() => listensIn(database)).toBe(true);
    await link.addJobs(queue, [{ name: 'encode', data: {}, opts: { jobId: 'after' } }]);
    // The crash may have taken the end of the first job, which then runs again.
    await expect.poll(() => done).toContain('after');
  });

  test('give interactive jobs before bulk ones, and a job that is added twice once', async () => {
    const database = await server.createSchema();
    const [link, queues] = [await openLink(database), await openSteps(database)];
    const jobOf = (name: string, bulk: boolean) => {
      return { name, bulk, payload: { tenant: 'default', jobNos: [1], alone: false }, traces: [] };
    };
    await queues.add('link', [jobOf('bulk 1', true), jobOf('bulk 2', true)]);
    await queues.add('link', [jobOf('interactive', false), jobOf('bulk 1', true)]);
    expect(await queues.waiting('link')).toEqual({ interactive: 1, bulk: 2 });
    expect(await queues.counts()).toContainEqual({ queue: 'link', state: 'prioritized', jobs: 2 });
    const done: string[] = [];
    const worker = link.openWorker('link', async (job: Job) => void done.push(job.id!), {});
    onTestFinished(() => worker.close());
    await expect.poll(() => done).toEqual(['interactive', 'bulk 1', 'bulk 2']);
    // Nothing is left of what is done.
    await expect.poll(() => queues.waiting('link')).toEqual({ interactive: 0, bulk: 0 });
    const kept = `SELECT id FROM ${roleOf(database)}_queue.job`;
    await expect.poll(() => server.read(database, kept)).toEqual([]);
  });

  test('drop a job whose worker died, as the ledger hands its rows out again', async () => {
    const database = await server.createSchema();
    const link = await openLink(database);
    const queue = link.openQueue('encode');
    await link.addJobs(queue, [{ name: 'encode', data: {}, opts: { jobId: 'lost', removeOnFail: true } }]);
    const table = `${roleOf(database)}_queue.job`;
    const found = await server.read(
      database,
      `UPDATE ${table} SET state = 'active', lock_token = 'of the dead', locked_until_ms = 1 RETURNING id`,
    );
    expect(found).toEqual([{ id: 'lost' }]);
    const done: string[] = [];
    const stalled: string[] = [];
    const options = { maxStalledCount: 0, stalledInterval: 50, ...WAITS_TO_BE_TOLD };
    const worker = link.openWorker('encode', async (job: Job) => void done.push(job.id!), options);
    onTestFinished(() => worker.close());
    worker.on('stalled', (id) => stalled.push(id));
    await expect.poll(() => server.read(database, `SELECT id FROM ${table}`)).toEqual([]);
    expect([done, stalled]).toEqual([[], ['lost']]);
    await link.addJobs(queue, [{ name: 'encode', data: {}, opts: { jobId: 'lost', removeOnComplete: true } }]);
    await expect.poll(() => done).toEqual(['lost']);
  });

  test('have forgotten their jobs once at their first use, and once after a crash', async () => {
    const queues = await openSteps(await server.createSchema());
    expect([await queues.haveForgotten(), await queues.haveForgotten()]).toEqual([true, false]);
    server.restart();
    const answer = () => queues.haveForgotten().catch(() => undefined);
    // The first command after the crash finds a connection that is gone.
    await expect.poll(answer).toBe(true);
    expect(await queues.haveForgotten()).toBe(false);
  });

  test('marks lapse, and of several processes one sets a mark that is missing', async () => {
    const database = await server.createSchema();
    const links = await Promise.all([1, 2, 3].map((process) => openLink(elsewhere(database, process))));
    const [link] = links as [QueueLink];
    const set = await Promise.all(links.map((one) => one.setMissingMark('a', null)));
    expect(set.filter(Boolean)).toEqual([true]);
    await link.setMark('b', 1);
    await expect.poll(() => link.hasMark('b')).toBe(false);
    expect(await link.setMissingMark('b', 60_000)).toBe(true);
    expect(await links[1]!.hasMark('b')).toBe(true);
    expect(await links[2]!.hasMark('c')).toBe(false);
  });

  test('that do not answer are said once, without the password, and so is that they are back', async () => {
    const database = (await server.createSchema()).replace('@', ':a-long-secret@');
    const log = createLog();
    const link = await openLink(database, log.logger);
    const worker = link.openWorker('encode', async () => {}, {});
    onTestFinished(() => worker.close());
    expect(await link.bounded(() => link.hasMark('a'))).toBe(false);
    server.pause();
    try {
      const asked = link.bounded(() => link.hasMark('a'));
      await expect(asked).rejects.toMatchObject({
        code: 'unavailable',
        message: expect.stringMatching(/PostgreSQL/) as string,
      });
      await expect.poll(() => link.isUp()).toBe(false);
      const said = log.of('queues_lost').length;
      await expect(link.bounded(() => link.hasMark('a'))).rejects.toThrow();
      expect([said, log.of('queues_lost').length]).toEqual([1, 1]);
    } finally {
      server.resume();
    }
    await expect.poll(() => link.bounded(() => link.hasMark('a')).catch(() => undefined)).toBe(false);
    await expect.poll(() => link.isUp()).toBe(true);
    // On a busy machine they may be lost and back again.
    await expect.poll(() => log.of('queues_back').length).toBe(log.of('queues_lost').length);
    expect(JSON.stringify(log.lines)).not.toContain('secret');
  });

  test('that cannot be reached at the start are named without the password', async () => {
    const opening = openLink('postgres://cairn:a-long-secret@127.0.0.1:1/cairn');
    await expect(opening).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('ECONNREFUSED') as string,
    });
    await expect(opening).rejects.not.toMatchObject({ message: expect.stringContaining('secret') as string });
  });
});

function createLog() {
  const lines: { readonly event: string; readonly fields: object }[] = [];
  const note = (fields: object, event: string) => void lines.push({ event, fields });
  const logger: Logger = { debug: note, info: note, warn: note, error: note };
  return { logger, lines, of: (event: string) => lines.filter((line) => line.event === event) };
}
