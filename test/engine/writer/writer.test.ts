import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../../src/engine/config.ts';
import type { Engine } from '../../../src/engine/engine.ts';
import type { AddReply } from '../../../src/engine/types.ts';
import { isEngineError } from '../../../src/engine/errors.ts';
import { createMetrics } from '../../../src/engine/metrics.ts';
import { openEngine } from '../../../src/engine/open-engine.ts';
import { switchEvents } from '../../../src/engine/store/events.ts';
import { readSegments } from '../../../src/engine/store/word-index/structure.ts';
import { openTenant } from '../../../src/engine/tenant-file/open-tenant.ts';
import { createTenantPool } from '../../../src/engine/tenant-file/tenant-pool.ts';
import { createGroupingWriter } from '../../../src/engine/writer/grouping-writer.ts';
import { createInlineTransport } from '../../../src/engine/writer/inline-transport.ts';
import { createManualClock, dumpTables, newMemory } from '../../support/engine-fixture.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { sqliteOf } from '../../support/sqlite-of.ts';

const settingsIn = (folder: string, settings = {}) =>
  readConfig({ OM_DB_PATH: path.join(folder, 'cairn.sqlite'), OM_EMBEDDINGS: 'none', ...settings });

/** A writer on this thread whose connection the test can reach. */
function openWriter(settings = {}) {
  const config = settingsIn(tempFolder(), settings);
  const file = config.paths.defaultTenant;
  const clock = createManualClock();
  const pool = createTenantPool(4, (name) =>
    openTenant(name, { role: 'acknowledger', identity: null, now: clock.now() }),
  );
  const metrics = createMetrics();
  const writer = createGroupingWriter(createInlineTransport({ pool, config, clock }), { metrics });
  const add = (content: string): Promise<AddReply> =>
    writer.write(file, 'addMemories', { items: [newMemory({ content })], options: {} });
  const count = () =>
    sqliteOf(pool.get(file).store).db.prepare('SELECT count(*) FROM memories').pluck().get() as number;
  const groups = async () => {
    const { values } = await metrics.commitRequests.get();
    const valueOf = (suffix: string) => values.find(({ metricName }) => metricName?.endsWith(suffix))?.value;
    return { commits: valueOf('_count'), requests: valueOf('_sum') };
  };
  return { writer, file, add, count, groups, store: () => pool.get(file).store };
}

async function withThread(settings: object, work: (engine: Engine) => Promise<void>): Promise<void> {
  const engine = await openEngine({ config: settingsIn(tempFolder(), settings), writer: 'thread' });
  try {
    await work(engine);
  } finally {
    await engine.close();
  }
}

const codeOf = async (promise: Promise<unknown>): Promise<unknown> => {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return isEngineError(error) ? error.code : error;
};

describe('a group commit', () => {
  test('holds what was asked for together, and one that fails spares the others', async () => {
    const { writer, file, add, count, groups } = openWriter();
    await writer.write(file, 'open', {});
    const outcomes = await Promise.allSettled([
      add('first'),
      writer.write(file, 'deleteMemory', { id: 'nobody' }),
      add('second'),
      writer.write(file, 'patchMemory', { id: 'nobody', patch: {} }),
      add('first'),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
    expect(isEngineError((outcomes[1] as PromiseRejectedResult).reason, 'not_found')).toBe(true);
    expect((outcomes[4] as PromiseFulfilledResult<AddReply>).value.outcomes[0]!.kind).toBe('duplicate');
    expect(count()).toBe(2);
    expect(await groups()).toEqual({ commits: 2, requests: 6 });
    await writer.close();
  });

  test('writes one segment of the word index, however many adds share it', async () => {
    const { writer, file, store } = openWriter();
    await writer.write(file, 'open', {});
    store().write(() => switchEvents(store(), true));
    const items = (content: string) => [
      newMemory({ content, userId: 'ann', tags: ['work', content], files: ['a.ts'] }),
    ];
    const adds = ['apples', 'pears', 'plums', 'figs'].map((content) =>
      writer.write(file, 'addMemories', { items: items(content), options: {} }, 'key'),
    );
    await Promise.all(adds);
    expect(readSegments(store())).toHaveLength(1);
  });

  test('undoes all that a failing request had written, and nothing of the others', async () => {
    const { writer, file, add, count, store } = openWriter();
    await writer.write(file, 'open', {});
    const broken = newMemory({ content: 'goes in, then something breaks' });
    // A value that the strict table refuses, in the second item of the request.
    const damaged = newMemory({ content: 'damaged', eventTime: 0.5 });
    const outcomes = await Promise.allSettled([
      add('before'),
      writer.write(file, 'addMemories', { items: [broken, damaged], options: {} }),
      add('after'),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(count()).toBe(2);
    expect(sqliteOf(store()).db.prepare('SELECT count(*) FROM jobs').pluck().get()).toBe(2);
    expect(sqliteOf(store()).db.prepare('SELECT rowid FROM memory_text').pluck().all()).toHaveLength(2);
    await writer.close();
  });

  test('is no larger than 256 requests, and none is lost', async () => {
    const { writer, add, count, groups } = openWriter();
    await Promise.all(Array.from({ length: 600 }, (_, n) => add(`memory ${n}`)));
    expect(count()).toBe(600);
    expect(await groups()).toEqual({ commits: 3, requests: 600 });
    await writer.close();
  });

  test('answers to a close what was asked for before it, and refuses what comes after', async () => {
    const { writer, file, add } = openWriter();
    const asked = [add('one'), add('two')];
    const closing = writer.close();
    expect(await codeOf(add('late'))).toBe('unavailable');
    expect((await Promise.all(asked)).map(({ outcomes }) => outcomes[0]!.kind)).toEqual(['accepted', 'accepted']);
    await closing;
    const db = new Database(file, { readonly: true });
    expect(db.prepare('SELECT content FROM memories ORDER BY seq').pluck().all()).toEqual(['one', 'two']);
    db.close();
  });
});

describe('a full disk', () => {
  test('is storage_full for all that shared the commit, stores no part of it, lets reads go on, and passes', async () => {
    const { writer, file, add, count, store } = openWriter();
    await add('stored before');
    const { db } = sqliteOf(store());
    const pages = db.pragma('page_count', { simple: true }) as number;
    db.pragma(`max_page_count = ${pages + 2}`);
    const before = dumpTables(sqliteOf(store()));
    const large = 'a long text with many words '.repeat(2_000);
    const outcomes = await Promise.all([codeOf(add('small')), codeOf(add(large)), codeOf(add('also small'))]);
    expect(outcomes[1]).toBe('storage_full');
    const stored = outcomes.filter((code) => code === undefined).length;
    expect(count()).toBe(1 + stored);
    if (stored === 0) expect(dumpTables(sqliteOf(store()))).toEqual(before);
    expect(await codeOf(add(large))).toBe('storage_full');
    expect(db.inTransaction).toBe(false);
    const reader = new Database(file, { readonly: true });
    expect(reader.prepare('SELECT content FROM memories WHERE seq = 1').pluck().get()).toBe('stored before');
    reader.close();

    db.pragma('max_page_count = 1000000');
    expect(await codeOf(add(large))).toBeUndefined();
    expect(count()).toBe(2 + stored);
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
    await writer.close();
  });
});

describe('the writer thread', () => {
  test('hands errors on with their code and their time to wait', async () => {
    await withThread({ OM_MAX_BACKLOG: '1' }, async (engine) => {
      const tenant = await engine.tenant('default');
      const idempotency = { key: 'k', route: 'r', bodyHash: Buffer.alloc(32) };
      const reply = await tenant.addMemories([newMemory({ content: 'a' })], { idempotency });
      const { id } = reply.outcomes[0] as { id: string };
      expect(await codeOf(tenant.deleteMemory('nobody'))).toBe('not_found');
      expect(await codeOf(tenant.patchMemory(id, { content: 'b' }, { ifVersion: 9 }))).toBe('conflict');
      const other = { ...idempotency, bodyHash: Buffer.alloc(32, 1) };
      expect(await codeOf(tenant.addMemories([newMemory({ content: 'a' })], { idempotency: other }))).toBe(
        'unprocessable',
      );
      await expect(tenant.addMemories([newMemory({ content: 'b' })])).rejects.toMatchObject({
        code: 'unavailable',
        retryAfterMs: expect.any(Number) as number,
      });
      expect((await tenant.getMemory(id)).content).toBe('a');
    });
  });

  test('waits for the lock of another process, gives up in the end with unavailable, and goes on afterwards', async () => {
    await withThread({}, async (engine) => {
      const tenant = await engine.tenant('default');
      await tenant.addMemories([newMemory({ content: 'before' })]);
      const other = new Database(engine.config.paths.defaultTenant);
      other.exec('BEGIN IMMEDIATE');
      await expect(tenant.addMemories([newMemory({ content: 'gave up' })])).rejects.toMatchObject({
        code: 'unavailable',
        retryAfterMs: expect.any(Number) as number,
      });
      expect((await tenant.listMemories({}, { limit: 5, offset: 0 })).map(({ content }) => content)).toEqual([
        'before',
      ]);
      const waiting = tenant.addMemories([newMemory({ content: 'waited' })]);
      // The writer starts with it after this turn of the loop, so it meets the lock first.
      await new Promise((resolve) => setImmediate(resolve));
      other.exec('COMMIT');
      other.close();
      expect((await waiting).outcomes[0]!.kind).toBe('accepted');
      expect((await tenant.listMemories({}, { limit: 5, offset: 0 })).map(({ content }) => content)).toEqual([
        'waited',
        'before',
      ]);
    });
  });

  test('commits together what came while it was busy, at most 256 requests', async () => {
    const metrics = createMetrics();
    const engine = await openEngine({ config: settingsIn(tempFolder()), writer: 'thread', metrics });
    const tenant = await engine.tenant('default');
    const commits = async () => {
      const { values } = await metrics.commitRequests.get();
      const valueOf = (suffix: string) => values.find(({ metricName }) => metricName?.endsWith(suffix))?.value ?? 0;
      return { commits: valueOf('_count'), requests: valueOf('_sum') };
    };
    /** Adds memories in several turns of the event loop, while another connection keeps the writer from its work. */
    const addInTurns = async (name: string, turns: number, each: number) => {
      const before = await commits();
      const other = new Database(engine.config.paths.defaultTenant);
      other.exec('BEGIN IMMEDIATE');
      const asked: Promise<AddReply>[] = [];
      for (let turn = 0; turn < turns; turn++) {
        for (let no = 0; no < each; no++)
          asked.push(tenant.addMemories([newMemory({ content: `${name} ${turn} ${no}` })]));
        await new Promise((resolve) => setImmediate(resolve));
      }
      other.exec('COMMIT');
      other.close();
      const ids = (await Promise.all(asked)).map(({ outcomes }) => (outcomes[0] as { id: string }).id);
      expect(new Set(ids).size).toBe(turns * each);
      const after = await commits();
      return { commits: after.commits - before.commits, requests: after.requests - before.requests };
    };
    const few = await addInTurns('few', 4, 2);
    expect(few.requests).toBe(8);
    // The thread takes the first round before or after the others have come.
    expect(few.commits).toBeLessThanOrEqual(2);
    expect(await addInTurns('many', 3, 200)).toEqual({ commits: 3, requests: 600 });
    await engine.close();
  });

  test('takes the writes of tenants in turns, however long those of one take', async () => {
    await withThread({}, async (engine) => {
      engine.control.createTenant('acme');
      const [tenant, acme] = [await engine.tenant('default'), await engine.tenant('acme')];
      await acme.addMemories([newMemory({ content: 'before' })]);
      const long = (no: number) =>
        Array.from({ length: 30_000 }, (_, word) => `w${(word * 7919 + no) % 99_991}`).join(' ');
      let done = 0;
      // Until the small one has come, too, the writer waits with the first of the long ones.
      const other = new Database(engine.config.paths.defaultTenant);
      other.exec('BEGIN IMMEDIATE');
      const many = Array.from({ length: 30 }, async (_, no) => {
        await tenant.addMemories([newMemory({ content: long(no) })]);
        done += 1;
      });
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
      const small = acme.addMemories([newMemory({ content: 'small' })]);
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
      other.exec('COMMIT');
      other.close();
      await small;
      expect(done).toBeLessThan(15);
      await Promise.all(many);
      expect(done).toBe(30);
    });
  });

  test('keeps what it acknowledged for the next start', async () => {
    const config = settingsIn(tempFolder());
    for (const content of ['one', 'two']) {
      const engine = await openEngine({ config, writer: 'thread' });
      await Promise.all([(await engine.tenant('default')).addMemories([newMemory({ content })]), engine.close()]);
    }
    const engine = await openEngine({ config, writer: 'inline' });
    expect(
      (await (await engine.tenant('default')).listMemories({}, { limit: 5, offset: 0 })).map(({ content }) => content),
    ).toEqual(['two', 'one']);
    await engine.close();
  });
});

test('what was counted of a file is forgotten with it, once it is closed', async () => {
  const { writer, file, add } = openWriter({ OM_MAX_BACKLOG: '1' });
  await add('one');
  const { outcomes } = await add('two').catch(() => ({ outcomes: [] }));
  expect(outcomes.filter(({ kind }) => kind === 'accepted')).toEqual([]);
  await writer.evict(file);
  for (const ending of ['', '-wal', '-shm']) fs.rmSync(`${file}${ending}`, { force: true });
  // The clock stands still, so a refusal that is remembered would refuse this add without a count.
  expect((await add('of the next tenant')).outcomes).toMatchObject([{ kind: 'accepted' }]);
  await writer.close();
});
