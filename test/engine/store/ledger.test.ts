import { v7 as uuidv7 } from 'uuid';
import { describe, expect, test } from 'vitest';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import { EngineError, isEngineError, type ErrorCode } from '../../../src/engine/errors.ts';
import { encodeMemories } from '../../../src/engine/steps/encode.ts';
import { linkMemories } from '../../../src/engine/steps/link.ts';
import { settleForgotten } from '../../../src/engine/commands/settle-document.ts';
import { recoverJobs } from '../../../src/engine/upkeep/recover-jobs.ts';
import { runDueSchedules } from '../../../src/engine/upkeep/schedules.ts';
import { backoffMs, retryOf } from '../../../src/engine/providers/retry.ts';
import { runBatch } from '../../../src/engine/batches/run-batch.ts';
import type { Embedder } from '../../../src/engine/ports.ts';
import { claimJobs, claimSuspects, claimThese, hasDueJob } from '../../../src/engine/store/job-claims.ts';
import { CRASH_BUDGET, failJob, finishJob, insertJob, releaseJob, type Claim } from '../../../src/engine/store/jobs.ts';
import { putWaypoint } from '../../../src/engine/store/edges.ts';
import { recoverLeases } from '../../../src/engine/store/job-leases.ts';
import { putReembed } from '../../../src/engine/store/reembed.ts';
import {
  dumpTables,
  expectNoOrphans,
  newMemory,
  openTestEngine,
  START,
  type TestEngine,
} from '../../support/engine-fixture.ts';
import { sqliteOf } from '../../support/sqlite-of.ts';

const LEASE_MS = 15_000;
const conflict = (error: unknown) => isEngineError(error, 'conflict');

function claim(
  { store, clock }: TestEngine,
  {
    step = 'encode',
    limit = 64,
    owner = 'a worker',
  }: { step?: 'encode' | 'link'; limit?: number; owner?: string } = {},
): Claim[] {
  return store.write(() => claimJobs(store, { step, limit, owner, leaseMs: LEASE_MS, now: clock.now() }));
}

const claimGroup = ({ store, clock }: TestEngine): Claim[] =>
  store.write(() =>
    claimSuspects(store, { step: 'encode', limit: 256, owner: 'a worker', leaseMs: LEASE_MS, now: clock.now() }),
  );

/** The worker dies and its leases run out. */
function crash(fixture: TestEngine): void {
  fixture.clock.advance(LEASE_MS);
  recoverJobs(fixture.maintenance, { everyOwner: false });
}

/** An embedder that fails for texts with a marker, as long as it is told to. */
function failingEmbedder(marker: string) {
  const state: { failure: EngineError | Error | undefined; calls: number } = { failure: undefined, calls: 0 };
  const wrap = (embedder: Embedder): Embedder => ({
    ...embedder,
    async embed(texts, options) {
      state.calls += 1;
      if (state.failure !== undefined && texts.some((text) => text.includes(marker))) throw state.failure;
      return embedder.embed(texts, options);
    },
  });
  return { state, wrap };
}

test('a forgotten document is settled, however many others wait for their chunks', async () => {
  await using fixture = await openTestEngine();
  const { store, clock } = fixture;
  const now = clock.now();
  store.write(() => {
    for (let document = 1; document <= 250; document += 1) {
      insertJob(store, { id: uuidv7(), kind: 'document', document, step: 'ingest', bulk: false, now });
      // The last one has no chunk left, but its worker died before it could say so.
      if (document < 250) insertJob(store, { id: uuidv7(), kind: 'memory', document, step: 'link', bulk: true, now });
    }
    store.prepare("UPDATE jobs SET step = 'settle' WHERE kind = 'document'").run();
  });
  settleForgotten(store, now);
  expect(fixture.all("SELECT document FROM jobs WHERE kind = 'document' AND state = 'done'")).toEqual([
    { document: 250 },
  ]);
});

describe('a claim', () => {
  test('takes interactive work before bulk, oldest first, as much as it may', async () => {
    await using fixture = await openTestEngine();
    const order: number[] = [];
    for (const [content, bulk] of [
      ['a', true],
      ['b', false],
      ['c', true],
      ['d', false],
    ] as const) {
      order.push((await fixture.add({ content }, { bulk })).jobNo);
      fixture.clock.advance(1);
    }
    const [a, b, c, d] = order;
    expect(claim(fixture, { limit: 1 }).map(({ memoryNo: memory }) => memory)).toEqual([b]);
    expect(
      claim(fixture, { limit: 2 })
        .map(({ memoryNo: memory }) => memory)
        .toSorted(),
    ).toEqual([a, d].toSorted());
    expect(claim(fixture).map(({ memoryNo: memory }) => memory)).toEqual([c]);
    expect(claim(fixture)).toEqual([]);
  });

  test('leaves what is not due', async () => {
    await using fixture = await openTestEngine();
    await fixture.add({ content: 'a' });
    const [held] = claim(fixture) as [Claim];
    fixture.store.write(() =>
      failJob(fixture.store, held, { code: 'internal', message: 'm', retryAt: START + 5 }, START),
    );
    fixture.clock.advance(4);
    expect(claim(fixture)).toEqual([]);
    fixture.clock.advance(1);
    expect(claim(fixture)).toMatchObject([{ memoryNo: held.memoryNo, attempts: 1, epoch: held.epoch + 1 }]);
  });
});

describe('a clock that was set back', () => {
  test('holds up neither what waits nor what a dead worker held', async () => {
    await using fixture = await openTestEngine();
    await fixture.add({ content: 'written tomorrow' });
    fixture.clock.advance(-DAY_MS);
    expect(hasDueJob(fixture.store, fixture.clock.now())).toBe(true);
    const [held] = claim(fixture);
    expect(held).toBeDefined();
    // Ten minutes are less than the longest lease that can be set, and much more than this one.
    fixture.clock.advance(-600_000);
    const times = { now: fixture.clock.now(), leaseMs: LEASE_MS };
    const recovered = recoverLeases(fixture.store, { ...times, everyOwner: false });
    expect(recovered).toEqual({ requeued: 1, dead: 0 });
    await fixture.drain();
    expect(await fixture.tenant.countJobs()).toMatchObject({ queued: 0, active: 0, done: 1 });
  });

  test('does not hurry a pause that is still ahead', async () => {
    await using fixture = await openTestEngine();
    const { jobNo } = await fixture.add({ content: 'waits a minute' });
    const inAMinute = fixture.clock.now() + 60_000;
    fixture.store.db.prepare('UPDATE jobs SET run_at = ? WHERE seq = ?').run(inAMinute, jobNo);
    expect(claim(fixture)).toEqual([]);
    expect(hasDueJob(fixture.store, fixture.clock.now())).toBe(false);
  });
});

describe('a lease that was lost', () => {
  test('makes a late commit of either step write nothing at all', async () => {
    await using fixture = await openTestEngine();
    await fixture.add({ content: 'The wallaby hops across the road.' });
    await fixture.drain();
    await fixture.add({ content: 'The wallaby hops across the street.' });
    const late = claim(fixture);
    crash(fixture);
    const beforeEncode = dumpTables(fixture.store);
    expect(await encodeMemories(fixture.batch, late)).toEqual({ advanced: [], finished: 0, failures: [] });
    expect(dumpTables(fixture.store)).toEqual(beforeEncode);

    const again = claimGroup(fixture)[0]!;
    const { advanced } = await encodeMemories(fixture.batch, [again]);
    expect(advanced).toHaveLength(1);
    crash(fixture);
    const beforeLink = dumpTables(fixture.store);
    expect(await linkMemories(fixture.batch, advanced)).toBe(0);
    expect(dumpTables(fixture.store)).toEqual(beforeLink);

    fixture.clock.advance(10_000);
    await fixture.drain();
    expect(fixture.get('SELECT count(*) FROM vectors')).toBe(2);
    expect(fixture.get('SELECT count(*) FROM edges')).toBe(1);
    expectNoOrphans(fixture.store);
  });

  test('makes a late finish without vectors write nothing either', async () => {
    await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
    await fixture.add({ content: 'words' });
    const [held] = claim(fixture) as [Claim];
    fixture.store.db.prepare(`UPDATE jobs SET step = 'link' WHERE seq = ?`).run(held.jobNo);
    releaseJob(fixture.store, held, START, START);
    let stolen = false;
    const open = () => {
      const tenant = fixture.batch.open();
      const state = sqliteOf(tenant.store).db.prepare('SELECT state FROM jobs').pluck().get();
      if (state === 'active' && !stolen) {
        stolen = true;
        crash(fixture);
      }
      return tenant;
    };
    await runBatch({ ...fixture.batch, open }, 1);
    expect(stolen).toBe(true);
    expect(fixture.get('SELECT state FROM memory_dynamics')).toBe('queued');
    expect(fixture.get('SELECT state FROM jobs')).toBe('queued');
  });

  test('makes a late failure and a late release change nothing', async () => {
    await using fixture = await openTestEngine();
    await fixture.add({ content: 'a' });
    const [held] = claim(fixture) as [Claim];
    crash(fixture);
    const before = dumpTables(fixture.store);
    expect(failJob(fixture.store, held, { code: 'x', message: 'x', retryAt: null }, START)).toBeUndefined();
    releaseJob(fixture.store, held, 0, START);
    expect(dumpTables(fixture.store)).toEqual(before);
  });

  test('comes from the time alone: a live lease is left alone', async () => {
    await using fixture = await openTestEngine();
    await fixture.add({ content: 'a' });
    claim(fixture);
    fixture.clock.advance(LEASE_MS - 1);
    recoverJobs(fixture.maintenance, { everyOwner: false });
    expect(await fixture.tenant.countJobs()).toMatchObject({ active: 1, queued: 0 });
    recoverJobs(fixture.maintenance, { everyOwner: true });
    expect(await fixture.tenant.countJobs()).toMatchObject({ active: 0, queued: 1 });
  });
});

describe('a crash', () => {
  test('makes suspects of all that were in flight; they run with nothing else inside and the innocent finish', async () => {
    await using fixture = await openTestEngine();
    const { outcomes } = await fixture.tenant.addMemories(['a', 'b', 'c'].map((content) => newMemory({ content })));
    claim(fixture);
    crash(fixture);
    expect(claim(fixture), 'suspects are not for the many').toEqual([]);
    const later = await fixture.add({ content: 'd' });
    expect((await fixture.runBatch()).claimed).toBe(3);
    expect(fixture.get('SELECT state FROM memory_dynamics WHERE seq = ?', later.jobNo)).toBe('queued');
    await fixture.drain();
    expect(await fixture.tenant.countJobs()).toMatchObject({ done: 4, queued: 0 });
    const first = outcomes[0] as { jobId: string };
    expect(await fixture.tenant.getJob(first.jobId)).toMatchObject({ crashes: 0, attempts: 0 });
    expect((await fixture.tenant.getJob(first.jobId)).timeline.map(({ event }) => event)).toEqual([
      'queued',
      'crashed',
      'encoded',
      'linked',
      'done',
    ]);
  });

  test.each([0, 77, 319])(
    'is traced to one of 320 jobs in six crashes, whichever it is, and nobody else is charged',
    async (poison) => {
      await using fixture = await openTestEngine();
      const items = Array.from({ length: 320 }, (_, number) => newMemory({ content: `note ${number}` }));
      const { outcomes } = await fixture.tenant.addMemories(items);
      const { jobId } = outcomes[poison] as { jobId: string };
      const { jobNo } = await fixture.tenant.getJob(jobId);
      claim(fixture, { limit: 320 });
      crash(fixture);
      const crashed: number[] = [];
      const survived: number[] = [];
      while ((await fixture.tenant.getJob(jobId)).state !== 'dead') {
        const group = claimGroup(fixture);
        if (group.some((held) => held.jobNo === jobNo)) {
          crashed.push(group.length);
          crash(fixture);
        } else if (group.length > 0) {
          survived.push(group.length);
          fixture.store.write(() => group.forEach((held) => finishJob(fixture.store, held, fixture.clock.now())));
        } else fixture.clock.set((await fixture.tenant.getJob(jobId)).runAt);
      }
      expect(crashed).toEqual([64, 8, 1, 1, 1]);
      expect(survived.toSorted((a, b) => b - a)).toEqual([
        ...Array(4).fill(64),
        ...Array(7).fill(8),
        ...Array(7).fill(1),
      ]);
      expect(await fixture.tenant.countJobs()).toMatchObject({ done: 319, dead: 1 });
      expect(fixture.get('SELECT count(*) FROM jobs WHERE crashes + attempts > 0')).toBe(1);
    },
  );

  test('of a worker that ran few suspects of many charges nobody: only who was truly alone', async () => {
    await using fixture = await openTestEngine();
    await fixture.tenant.addMemories(['a', 'b'].map((content) => newMemory({ content })));
    claim(fixture);
    crash(fixture);
    expect(claimGroup(fixture)).toHaveLength(2);
    crash(fixture);
    expect(fixture.get('SELECT sum(crashes) FROM jobs')).toBe(0);
    expect(claimGroup(fixture)).toHaveLength(1);
    crash(fixture);
    expect(fixture.get('SELECT sum(crashes) FROM jobs')).toBe(1);
  });

  test('makes a group that a queue still carries stale: in smaller ones its jobs are not taken together', async () => {
    await using fixture = await openTestEngine();
    await fixture.tenant.addMemories(['a', 'b', 'c'].map((content) => newMemory({ content })));
    claim(fixture);
    crash(fixture);
    const take = (jobNos: number[]) =>
      fixture.store.write(() =>
        claimThese(fixture.store, {
          jobNos,
          alone: true,
          step: 'encode',
          owner: 'a worker',
          leaseMs: LEASE_MS,
          now: fixture.clock.now(),
        }),
      );
    expect(take([1, 2, 3])).toHaveLength(3);
    crash(fixture);
    expect(take([1, 2, 3])).toEqual([]);
    expect(take([2])).toHaveLength(1);
  });

  test('counts only while alone, and the third ends the job: the memory is failed and found by its words', async () => {
    await using fixture = await openTestEngine();
    const { jobId } = await fixture.add({ content: 'The poison quokka.' });
    claim(fixture);
    crash(fixture);
    for (let alone = 1; alone <= CRASH_BUDGET; alone += 1) {
      expect(await fixture.tenant.getJob(jobId)).toMatchObject({ state: 'queued', crashes: alone - 1, attempts: 0 });
      // It keeps away from the next crash for a while, since that may be another's doing.
      expect((await fixture.tenant.getJob(jobId)).runAt - fixture.clock.now()).toBe((alone - 1) * 10_000);
      if (alone > 1) expect(claimGroup(fixture)).toEqual([]);
      fixture.clock.advance((alone - 1) * 10_000);
      expect(claimGroup(fixture)).toHaveLength(1);
      crash(fixture);
    }
    expect(await fixture.tenant.getJob(jobId)).toMatchObject({
      state: 'dead',
      crashes: CRASH_BUDGET,
      error: { code: 'crash', message: expect.stringContaining('died') as string },
      finishedAt: fixture.clock.now(),
    });
    expect(claimGroup(fixture)).toEqual([]);
    const { hits } = await fixture.tenant.query({ query: 'quokka', k: 1, filter: {} });
    expect(hits.map((hit) => hit.memory.state)).toEqual(['failed']);

    await fixture.tenant.retryJob(jobId);
    expect(await fixture.tenant.getJob(jobId)).toMatchObject({
      state: 'queued',
      crashes: 0,
      error: null,
      finishedAt: null,
    });
    await fixture.drain();
    expect((await fixture.tenant.getJob(jobId)).state).toBe('done');
    expect(
      (await fixture.tenant.getMemory((await fixture.tenant.listMemories({}, { limit: 1, offset: 0 }))[0]!.id)).state,
    ).toBe('ready');
  });
});

describe('a failure', () => {
  test('is retried with backoff until the attempts are used up, then dead, and can be retried by hand', async () => {
    const { state, wrap } = failingEmbedder('poison');
    await using fixture = await openTestEngine({ embedder: wrap, settings: { OM_JOB_ATTEMPTS: '3' } });
    state.failure = new Error('something broke');
    const { id, jobId } = await fixture.add({ content: 'a poison text' });
    const other = await fixture.add({ content: 'a good text' });
    for (let attempt = 1; attempt < 3; attempt += 1) {
      await fixture.drain();
      const job = await fixture.tenant.getJob(jobId);
      expect(job).toMatchObject({
        state: 'failed',
        attempts: attempt,
        error: { code: 'internal', message: 'something broke' },
      });
      expect(job.runAt - fixture.clock.now()).toBeGreaterThanOrEqual(500 * 2 ** (attempt - 1));
      expect(job.runAt - fixture.clock.now()).toBeLessThanOrEqual(1_000 * 2 ** (attempt - 1));
      expect((await fixture.tenant.getMemory(id)).state).toBe('queued');
      fixture.clock.set(job.runAt);
    }
    await fixture.drain();
    expect(await fixture.tenant.getJob(jobId)).toMatchObject({
      state: 'dead',
      attempts: 3,
      finishedAt: fixture.clock.now(),
    });
    expect((await fixture.tenant.getJob(jobId)).timeline.map(({ event }) => event)).toEqual([
      'queued',
      'failed',
      'failed',
      'dead',
    ]);
    expect((await fixture.tenant.getMemory(id)).state).toBe('failed');
    expect((await fixture.tenant.getMemory(other.id)).state, 'spares the rest of its batch').toBe('ready');

    state.failure = undefined;
    await fixture.tenant.retryJob(jobId);
    expect((await fixture.tenant.getMemory(id)).state).toBe('queued');
    await fixture.drain();
    expect(await fixture.tenant.getJob(jobId)).toMatchObject({ state: 'done', error: null });
    expect((await fixture.tenant.getMemory(id)).state).toBe('ready');
  });

  test.each<ErrorCode>(['invalid', 'not_found'])('that is %s gives up at once', async (code) => {
    const { state, wrap } = failingEmbedder('poison');
    await using fixture = await openTestEngine({ embedder: wrap });
    state.failure = new EngineError(code, 'refused');
    const { id, jobId } = await fixture.add({ content: 'a poison text' });
    await fixture.drain();
    expect(await fixture.tenant.getJob(jobId)).toMatchObject({
      state: 'dead',
      attempts: 1,
      error: { code, message: 'refused' },
    });
    expect((await fixture.tenant.getMemory(id)).state).toBe('failed');
  });

  test.each<ErrorCode>(['rate_limited', 'unavailable', 'storage_full'])(
    'that is %s counts against nobody',
    async (code) => {
      const { state, wrap } = failingEmbedder('');
      await using fixture = await openTestEngine({ embedder: wrap });
      state.failure = new EngineError(code, 'later', { retryAfterMs: 7_000 });
      const { jobId } = await fixture.add({ content: 'a text' });
      for (let round = 0; round < 10; round += 1)
        expect(await fixture.runBatch()).toEqual({ claimed: 1, providerPauseMs: 7_000 });
      expect(await fixture.tenant.getJob(jobId)).toMatchObject({
        state: 'queued',
        attempts: 0,
        crashes: 0,
        error: null,
      });
      state.failure = undefined;
      expect(await fixture.runBatch()).toEqual({ claimed: 1, providerPauseMs: null });
      expect((await fixture.tenant.getJob(jobId)).state).toBe('done');
    },
  );

  test('that belongs to no one of a batch is found by running its jobs alone, and costs the innocent nothing', async () => {
    await using fixture = await openTestEngine({ settings: { OM_JOB_ATTEMPTS: '2' } });
    const added = [];
    for (const content of ['a', 'b', 'c', 'd']) added.push(await fixture.add({ content }));
    const poison = added[2]!;
    // A row that was damaged outside: reading it fails in the middle of preparing the batch.
    fixture.store.db.prepare('UPDATE memories SET metadata = ? WHERE seq = ?').run('{"sector"', poison.jobNo);
    for (let round = 0; round < 3; round += 1) {
      await fixture.drain();
      fixture.clock.advance(60_000);
    }
    expect((await fixture.tenant.getJob(poison.jobId)).state).toBe('dead');
    for (const { jobId } of added.filter((memory) => memory !== poison)) {
      expect(await fixture.tenant.getJob(jobId)).toMatchObject({ state: 'done', attempts: 0 });
    }
  });

  test('waits between half of and the whole of 1, 2, 4 … 60 seconds', () => {
    const bounds = (attempts: number) => [backoffMs(attempts, () => 0), backoffMs(attempts, () => 1)];
    expect([0, 1, 2, 5, 6, 50].map(bounds)).toEqual([
      [500, 1_000],
      [1_000, 2_000],
      [2_000, 4_000],
      [16_000, 32_000],
      [30_000, 60_000],
      [30_000, 60_000],
    ]);
  });

  test('is judged by its code', () => {
    const budget = { attempts: 3, attemptsMax: 5 };
    expect(retryOf(new EngineError('rate_limited', '', { retryAfterMs: 5 }), budget)).toEqual({ kind: 'wait', ms: 5 });
    expect(retryOf(new EngineError('unavailable', ''), budget)).toEqual({ kind: 'wait', ms: 1_000 });
    expect(retryOf(new EngineError('invalid', ''), { attempts: 0, attemptsMax: 5 })).toEqual({ kind: 'give_up' });
    expect(retryOf(new Error('bug'), budget)).toEqual({ kind: 'retry' });
    expect(retryOf(new Error('bug'), { attempts: 4, attemptsMax: 5 })).toEqual({ kind: 'give_up' });
  });
});

describe('by hand', () => {
  test('an unfinished job can be cancelled, once; its memory stays and is found by its words', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const { id, jobId } = await fixture.add({ content: 'the quokka' });
    const late = claim(fixture);
    expect(await tenant.cancelJob(jobId)).toMatchObject({ state: 'cancelled', finishedAt: START });
    expect((await encodeMemories(fixture.batch, late)).advanced).toEqual([]);
    expect((await tenant.query({ query: 'quokka', k: 1, filter: {} })).hits[0]?.memory).toMatchObject({
      id,
      state: 'failed',
    });
    await expect(tenant.cancelJob(jobId)).rejects.toSatisfy(conflict);
    await tenant.retryJob(jobId);
    await fixture.drain();
    expect((await tenant.getMemory(id)).state).toBe('ready');
  });

  test('a job that is queued, active or done can be neither retried nor discarded', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const { jobId } = await fixture.add({ content: 'a' });
    const refused = async () => {
      await expect(tenant.retryJob(jobId)).rejects.toSatisfy(conflict);
      await expect(tenant.discardJob(jobId)).rejects.toSatisfy(conflict);
    };
    await refused();
    claim(fixture);
    await refused();
    crash(fixture);
    await fixture.drain();
    await refused();
    expect((await tenant.getJob(jobId)).state).toBe('done');
  });

  test('a dead or cancelled job can be discarded, and is gone then', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const { jobId } = await fixture.add({ content: 'a' });
    await tenant.cancelJob(jobId);
    await tenant.discardJob(jobId);
    await expect(tenant.getJob(jobId)).rejects.toThrow(expect.objectContaining({ code: 'not_found' }) as Error);
    await expect(tenant.discardJob(jobId)).rejects.toMatchObject({ code: 'not_found' });
    await expect(tenant.retryJob(jobId)).rejects.toMatchObject({ code: 'not_found' });
    await expect(tenant.cancelJob(jobId)).rejects.toMatchObject({ code: 'not_found' });
  });

  test('a job cannot be retried once its memory is gone, nor beside a newer one', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const gone = await fixture.add({ content: 'gone' });
    await tenant.cancelJob(gone.jobId);
    await tenant.deleteMemory(gone.id);
    await expect(tenant.retryJob(gone.jobId)).rejects.toSatisfy(conflict);
    const patched = await fixture.add({ content: 'old text' });
    await tenant.cancelJob(patched.jobId);
    await tenant.patchMemory(patched.id, { content: 'new text' });
    await expect(tenant.retryJob(patched.jobId)).rejects.toSatisfy(conflict);
  });
});

test('the ledger tells how a job went, and counts and lists by state', async () => {
  await using fixture = await openTestEngine();
  const { tenant, clock } = fixture;
  const first = await fixture.add({ content: 'a' });
  clock.advance(5);
  await fixture.drain();
  clock.advance(5);
  const second = await fixture.add({ content: 'b' });
  expect(await tenant.getJob(first.jobId)).toMatchObject({
    id: first.jobId,
    jobNo: first.jobNo,
    kind: 'memory',
    memoryId: first.id,
    step: 'done',
    state: 'done',
    finishedAt: START + 5,
    timeline: [
      { event: 'queued', at: START },
      { event: 'encoded', at: START + 5 },
      { event: 'linked', at: START + 5 },
      { event: 'done', at: START + 5 },
    ],
  });
  expect(await tenant.countJobs()).toEqual({ queued: 1, active: 0, failed: 0, done: 1, dead: 0, cancelled: 0 });
  expect(await tenant.oldestWaitingJobAt()).toBe(START + 10);
  const listed = await tenant.listJobs({ limit: 10, offset: 0 });
  expect([listed.total, listed.items.map(({ id }) => id)]).toEqual([2, [second.jobId, first.jobId]]);
  expect(await tenant.listJobs({ state: 'done', limit: 10, offset: 0 })).toMatchObject({
    total: 1,
    items: [{ id: first.jobId }],
  });
  await fixture.drain();
  expect(await tenant.oldestWaitingJobAt()).toBeNull();
});

test('finished jobs and stored replies go after their time; dead jobs stay', async () => {
  const { state, wrap } = failingEmbedder('poison');
  await using fixture = await openTestEngine({ embedder: wrap });
  state.failure = new EngineError('invalid', 'refused');
  const dead = await fixture.add({ content: 'poison' });
  const idempotency = { key: 'k', route: 'r', bodyHash: Buffer.alloc(32) };
  await fixture.add({ content: 'good' }, { idempotency });
  await fixture.drain();
  await runDueSchedules(fixture.maintenance);
  fixture.clock.advance(24 * 3_600_000);
  await runDueSchedules(fixture.maintenance);
  expect(await fixture.tenant.countJobs()).toMatchObject({ done: 1, dead: 1 });
  fixture.clock.advance(600_000);
  await runDueSchedules(fixture.maintenance);
  expect(fixture.all('SELECT id FROM jobs')).toEqual([{ id: dead.jobId }]);
  expect(fixture.get('SELECT count(*) FROM idempotency_keys')).toBe(0);
  expect(fixture.get('SELECT count(*) FROM memories')).toBe(2);
});

test('a search for a neighbour from before the model change reached a memory does not replace its new waypoint', async () => {
  await using fixture = await openTestEngine();
  const { store, clock, batch } = fixture;
  const near = 'The wallaby hops across the long road at night.';
  const contents = [near, `${near} Then it rests.`, `${near} Then it rests.!`];
  const numbers: number[] = [];
  for (const content of contents) {
    numbers.push((await fixture.add({ content })).memoryNo);
    if (numbers.length < 3) await fixture.drain();
  }
  const [first, second, third] = numbers as [number, number, number];
  const { advanced } = await encodeMemories(batch, claim(fixture));
  const progress = { phase: 'link', owed: 0, pass: 1, wentLiveAt: 0, since: { at: 0, done: 0 } } as const;
  const relink = (cursor: number) =>
    putReembed(store, { ...progress, target: batch.open().liveModels![0].modelNo, cursor });
  store.write(() => relink(first));
  let isReached = false;
  const reached = () => {
    if (isReached || !store.db.inTransaction) return clock.now();
    isReached = true;
    relink(third);
    putWaypoint(store, { src: third, dst: second, similarity: 0.9 }, START);
    return clock.now();
  };
  expect(await linkMemories({ ...batch, clock: { ...clock, now: reached } }, advanced)).toBe(1);
  expect(isReached).toBe(true);
  expect(fixture.all('SELECT dst FROM edges WHERE src = ?', third)).toEqual([{ dst: second }]);
});
