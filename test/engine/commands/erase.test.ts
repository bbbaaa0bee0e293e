import fs from 'node:fs';
import { describe, expect, test } from 'vitest';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import { isEngineError } from '../../../src/engine/errors.ts';
import { encodeMemories } from '../../../src/engine/steps/encode.ts';
import { eraseMemories } from '../../../src/engine/commands/erase.ts';
import { linkMemories } from '../../../src/engine/steps/link.ts';
import { cleanAfterErase } from '../../../src/engine/upkeep/clean-after-erase.ts';
import { expireMemories } from '../../../src/engine/upkeep/expire-memories.ts';
import { claimJobs } from '../../../src/engine/store/job-claims.ts';
import { holdsLease } from '../../../src/engine/store/job-leases.ts';
import type { DeleteReceipt, MemoryFilter } from '../../../src/engine/types.ts';
import {
  dumpTables,
  expectNoOrphans,
  idsWithWord,
  newMemory,
  openTestEngine,
  START,
  type TestEngine,
} from '../../support/engine-fixture.ts';
import { searchIdempotencyTraces } from '../../support/attacks/idempotency-traces.ts';
import { startFakeProvider } from '../../support/fake-provider.ts';

/**
 * As a receipt counts them, but for jobs, since a delete makes some: new links for neighbours. Replies stay as
 * tombstones.
 */
function countRows(fixture: TestEngine): Omit<DeleteReceipt, 'jobs'> {
  return {
    memories: fixture.get('SELECT count(*) FROM memories'),
    documents: fixture.get('SELECT count(*) FROM documents'),
    vectors: fixture.get('SELECT count(*) FROM vectors'),
    edges: fixture.get('SELECT count(*) FROM edges'),
    revisions: fixture.get('SELECT count(*) FROM memory_revisions'),
    cachedEmbeddings: fixture.get(
      `SELECT count(*) FROM (SELECT DISTINCT model_no, text_hash FROM vectors WHERE text_hash <> '')`,
    ),
    storedReplies: fixture.get('SELECT count(*) FROM idempotency_keys WHERE reply IS NOT NULL'),
  };
}

const difference = (before: ReturnType<typeof countRows>, after: ReturnType<typeof countRows>) =>
  Object.fromEntries(
    Object.entries(before).map(([name, count]: [string, number]) => [name, count - after[name as keyof typeof after]]),
  );

/** What a delete does, between two statements of a step. */
function eraseNow({ store, batch, clock }: TestEngine, memoryNo: number): void {
  const { indexes } = batch.open();
  const context = {
    store,
    indexes,
    config: batch.config,
    now: clock.now(),
    newId: batch.newId,
    backlog: { atMost: 0 },
    writtenBy: null,
  };
  store.write(() => eraseMemories(context, [memoryNo]));
}

/** Which of the files of the database hold these bytes. */
const filesWith = (file: string, text: string) =>
  [file, `${file}-wal`, `${file}-shm`].filter((name) => fs.existsSync(name) && fs.readFileSync(name).includes(text));

describe('a delete', () => {
  test('says what it removed, row for row, with vectors of paid models', async () => {
    const provider = await startFakeProvider({ dimensions: 256 });
    try {
      await using fixture = await openTestEngine({
        settings: { OM_EMBEDDINGS: 'openai', OM_OPENAI_BASE_URL: provider.url, OM_EMBED_LINGER_MS: '0' },
      });
      const { tenant } = fixture;
      const idempotency = { key: 'k', route: 'r', bodyHash: Buffer.alloc(32) };
      const long = Array.from({ length: 900 }, (_, n) => `window${n} wallaby kangaroo`).join(' ');
      const items = [
        { content: 'The wallaby hops across the road.' },
        { content: long },
        { content: 'A wallaby hops over the road.' },
      ];
      const { outcomes } = await tenant.addMemories(
        items.map((item) => newMemory({ ...item, sessionId: 's' })),
        { idempotency },
      );
      await fixture.drain();
      const ids = outcomes.map((outcome) => (outcome as { id: string }).id);
      await tenant.patchMemory(ids[1]!, { content: `${long} and an emu` });
      await tenant.patchMemory(ids[1]!, { tags: ['bird'] });
      await fixture.drain();
      for (const id of ids) {
        const memoryNo = fixture.memoryNoOf(id);
        const jobs = fixture.get<number>('SELECT count(*) FROM jobs WHERE memory = ?', memoryNo);
        const before = countRows(fixture);
        const { erasure, ...receipt } = await tenant.deleteMemory(id);
        expect(erasure).toMatch(/^[0-9a-f-]{36}\.[\w-]{22}$/);
        expect(receipt).toEqual({ ...difference(before, countRows(fixture)), jobs });
        expect(fixture.get('SELECT count(*) FROM jobs WHERE memory = ?', memoryNo)).toBe(0);
        expect(receipt).toMatchObject({ memories: 1, revisions: id === ids[1] ? 2 : 0 });
        expect(receipt.vectors).toBeGreaterThan(id === ids[1] ? 2 : 0);
        expect(receipt.cachedEmbeddings).toBeGreaterThan(0);
        expectNoOrphans(fixture.store);
        await fixture.drain();
      }
      expect(countRows(fixture)).toEqual({
        memories: 0,
        documents: 0,
        vectors: 0,
        edges: 0,
        revisions: 0,
        cachedEmbeddings: 0,
        storedReplies: 0,
      });
    } finally {
      await provider.close();
    }
  });

  test('of an unknown or deleted id is not found', async () => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add({ content: 'once' });
    await fixture.tenant.deleteMemory(id);
    for (const gone of [id, 'no such id']) {
      await expect(fixture.tenant.deleteMemory(gone)).rejects.toSatisfy((error) => isEngineError(error, 'not_found'));
    }
  });

  test('takes the words out of the context of those that came after', async () => {
    await using fixture = await openTestEngine();
    const added = [];
    for (const content of ['alpha', 'bravo', 'charlie', 'delta']) {
      added.push(await fixture.add({ content, sessionId: 's', eventTime: START + added.length }));
    }
    const [alpha, bravo, charlie, delta] = added.map(({ id }) => id) as [string, string, string, string];
    expect(idsWithWord(fixture, 'bravo')).toEqual([bravo, charlie, delta]);
    await fixture.tenant.deleteMemory(bravo);
    expect(idsWithWord(fixture, 'bravo')).toEqual([]);
    expect(idsWithWord(fixture, 'alpha', 'context')).toEqual([charlie, delta]);
    await fixture.tenant.deleteMemory(alpha);
    expect(idsWithWord(fixture, 'alpha')).toEqual([]);
  });

  test('that cleaning has followed leaves nothing of the text or its words in any file', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const session = { userId: 'u', sessionId: 's' };
    const addMany = (about: string) =>
      tenant.addMemories(
        Array.from({ length: 300 }, (_, n) =>
          newMemory({ content: `Note ${n} about ${about}, number ${n * 7}.`, ...session }),
        ),
      );
    await addMany('rivers and bridges');
    const { id } = await fixture.add({
      content: `The password is Zyxwquokka and the note goes on. ${'Marsupial canary paragraph. '.repeat(400)}`,
      title: 'Titlecanary',
      tags: ['tagcanary'],
      metadata: { secret: 'metacanary' },
      entities: ['Entitycanary'],
      ...session,
    });
    await addMany('roads and tunnels');
    await fixture.drain();
    await tenant.patchMemory(id, { content: 'The password became Qwyxwombat.' });
    await fixture.drain();
    const canaries = ['Zyxwquokka', 'Marsupial canary', 'Titlecanary', 'metacanary', 'Qwyxwombat'];
    // FTS5 stores stems, without the letters that one shares with the word before it.
    const words = ['xwquokka', 'lecanari', 'gcanari', 'titycanari', 'yxwombat'];
    for (const text of [...canaries, ...words]) expect(filesWith(fixture.file, text), text).not.toEqual([]);

    await tenant.deleteMemory(id);
    expect(await cleanAfterErase(fixture.maintenance)).toBe(true);
    for (const text of [...canaries, ...words]) expect(filesWith(fixture.file, text), text).toEqual([]);
    expect(await cleanAfterErase(fixture.maintenance)).toBe(false);
    expectNoOrphans(fixture.store);
  });

  test('is cleaned up after another time if a reader still stood on the old snapshot', async () => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add({ content: 'Zyxwquokka' });
    fixture.store.db.pragma('wal_checkpoint(PASSIVE)');
    const reader = fixture.store.db.constructor as new (file: string, options: object) => typeof fixture.store.db;
    const other = new reader(fixture.file, { readonly: true });
    try {
      other.exec('BEGIN');
      expect(other.prepare('SELECT count(*) FROM memories').pluck().get()).toBe(1);
      await fixture.tenant.deleteMemory(id);
      expect(await cleanAfterErase(fixture.maintenance)).toBe(false);
      other.exec('COMMIT');
      expect(await cleanAfterErase(fixture.maintenance)).toBe(true);
      expect(filesWith(fixture.file, 'Zyxwquokka')).toEqual([]);
    } finally {
      other.close();
    }
  });
});

describe('a delete while its job is in flight', () => {
  test('during the encode step leaves no ghost', async () => {
    let onEmbed = async () => {};
    await using fixture = await openTestEngine({
      embedder: (embedder) => ({
        ...embedder,
        async embed(texts, options) {
          await onEmbed();
          return embedder.embed(texts, options);
        },
      }),
    });
    const { id } = await fixture.add({ content: 'A ghost story.' });
    const stays = await fixture.add({ content: 'Another story.' });
    onEmbed = async () => {
      onEmbed = async () => {};
      await fixture.tenant.deleteMemory(id);
    };
    await fixture.drain();
    expect(fixture.get('SELECT count(*) FROM memories')).toBe(1);
    expect(fixture.all('SELECT memory FROM vectors')).toEqual([{ memory: stays.memoryNo }]);
    expect((await fixture.tenant.listJobs({ limit: 10, offset: 0 })).items.map(({ state }) => state)).toEqual([
      'done',
      'cancelled',
    ]);
    expectNoOrphans(fixture.store);
  });

  test('before the link step commits leaves no link to it', async () => {
    await using fixture = await openTestEngine();
    const target = await fixture.add({ content: 'The wallaby hops across the road.' });
    await fixture.drain();
    await fixture.add({ content: 'The wallaby hops across the old road.' });
    const options = { owner: 'o', leaseMs: 1_000, now: START, limit: 10 };
    const claims = fixture.store.write(() => claimJobs(fixture.store, { ...options, step: 'encode' }));
    const { advanced } = await encodeMemories(fixture.batch, claims);
    // The second time that the link step asks for the file is when it writes what it found.
    let opened = 0;
    const open = () => {
      if (++opened === advanced.length + 1) eraseNow(fixture, target.memoryNo);
      return fixture.batch.open();
    };
    expect(await linkMemories({ ...fixture.batch, open }, advanced)).toBe(1);
    expect(opened).toBeGreaterThan(advanced.length);
    expect(fixture.all('SELECT * FROM edges')).toEqual([]);
    expectNoOrphans(fixture.store);
  });

  test('makes the late commit of every step write nothing', async () => {
    await using fixture = await openTestEngine();
    await fixture.add({ content: 'The wallaby hops across the road.' });
    await fixture.drain();
    for (const step of ['encode', 'link'] as const) {
      const { id } = await fixture.add({ content: `The wallaby hops across the road in ${step}.` });
      const options = { owner: 'o', leaseMs: 1_000, now: START, limit: 10 };
      const claims = fixture.store.write(() => claimJobs(fixture.store, { ...options, step: 'encode' }));
      const late = step === 'encode' ? claims : (await encodeMemories(fixture.batch, claims)).advanced;
      expect(late).toHaveLength(1);
      await fixture.tenant.deleteMemory(id);
      const before = dumpTables(fixture.store);
      if (step === 'encode') await encodeMemories(fixture.batch, late);
      else await linkMemories(fixture.batch, late);
      expect(dumpTables(fixture.store)).toEqual(before);
      expect(holdsLease(fixture.store, late[0]!)).toBe(false);
    }
  });
});

describe('a delete by filter', () => {
  test('goes on in slices until nothing matches, hidden memories included, and leaves the rest', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const items = Array.from({ length: 250 }, (_, n) =>
      newMemory({ content: `note ${n}`, userId: 'u', sessionId: 's' }),
    );
    await tenant.addMemories(items);
    await fixture.add({ content: 'hidden by its validity', userId: 'u', validTo: START - 1 });
    const archived = await fixture.add({ content: 'hidden by its status', userId: 'u' });
    await tenant.patchMemory(archived.id, { status: 'archived' });
    await fixture.add({ content: 'hidden by its expiry', userId: 'u', expiresAt: START - 1 });
    const kept = await fixture.add({ content: 'another one', userId: 'v' });
    expect(await tenant.deleteMemories({ userIds: ['u'] })).toMatchObject({ memories: 253, jobs: 253 });
    expect(fixture.all('SELECT id FROM memories')).toEqual([{ id: kept.id }]);
    expectNoOrphans(fixture.store);
  });

  test.each<MemoryFilter>([
    {},
    { userIds: undefined },
    { tags: [] },
    { metadata: {} },
    { tags: [], metadata: {}, userIds: undefined },
    { withinTags: [] },
    { withinTags: ['red'], tags: [] },
  ])('that names nothing (%j) is invalid and deletes nothing', async (filter) => {
    await using fixture = await openTestEngine();
    await fixture.add({ content: 'stays', tags: ['red'] });
    await expect(fixture.tenant.deleteMemories(filter)).rejects.toSatisfy((error) => isEngineError(error, 'invalid'));
    expect(fixture.get('SELECT count(*) FROM memories')).toBe(1);
  });

  test('that matches nobody removes nothing', async () => {
    await using fixture = await openTestEngine();
    await fixture.add({ content: 'stays' });
    expect((await fixture.tenant.deleteMemories({ userIds: [] })).memories).toBe(0);
    expect((await fixture.tenant.deleteMemories({ userIds: ['nobody'] })).memories).toBe(0);
  });
});

describe('an expired memory', () => {
  test('is hidden at once and erased later', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const { id } = await fixture.add({ content: 'A secret quokka.', expiresAt: START + DAY_MS });
    const stays = await fixture.add({ content: 'An open quokka.', expiresAt: START + DAY_MS + 1 });
    await fixture.drain();
    const found = async () =>
      (await tenant.query({ query: 'quokka', k: 5, filter: {}, reinforce: false })).hits.map((hit) => hit.memory.id);
    expect((await found()).toSorted()).toEqual([id, stays.id].toSorted());
    clock.set(START + DAY_MS);
    expect(await found()).toEqual([stays.id]);
    expect((await tenant.listMemories({}, { limit: 10, offset: 0 })).map((memory) => memory.id)).toEqual([stays.id]);
    const notFound = (error: unknown) => isEngineError(error, 'not_found');
    for (const read of [tenant.getMemory, tenant.listRevisions, tenant.listLinks]) {
      await expect(read(id)).rejects.toSatisfy(notFound);
    }
    await expect(tenant.patchMemory(id, { expiresAt: null })).rejects.toSatisfy(notFound);
    await expect(tenant.reinforceMemory(id, 0.1)).rejects.toSatisfy(notFound);
    expect(fixture.get('SELECT count(*) FROM memories')).toBe(2);
    expect(await expireMemories(fixture.maintenance)).toBe(1);
    expect(fixture.all('SELECT id FROM memories')).toEqual([{ id: stays.id }]);
    expect(await expireMemories(fixture.maintenance)).toBe(0);
    expectNoOrphans(fixture.store);
  });

  test.each([-1, 0, 1])('is erased even with the time %i, by an add and by a patch', async (expiresAt) => {
    await using fixture = await openTestEngine();
    await fixture.tenant.addMemories([newMemory({ content: 'Never seen.', expiresAt })]);
    const { id } = await fixture.add({ content: 'Seen until now.' });
    await fixture.tenant.patchMemory(id, { expiresAt });
    expect(await expireMemories(fixture.maintenance)).toBe(2);
    expect(fixture.get('SELECT count(*) FROM memories')).toBe(0);
  });

  test('goes in slices of any number', async () => {
    await using fixture = await openTestEngine();
    await fixture.tenant.addMemories(
      Array.from({ length: 230 }, (_, n) => newMemory({ content: `n ${n}`, expiresAt: START + n })),
    );
    fixture.clock.set(START + 214);
    expect(await expireMemories(fixture.maintenance)).toBe(215);
    expect(fixture.get('SELECT count(*) FROM memories')).toBe(15);
    const records = fixture.all<{ detail: string }>(`SELECT detail FROM audit WHERE action = 'memory.expire'`);
    const counts = records.map(({ detail }) => (JSON.parse(detail) as { memories: number }).memories);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(215);
    const { erased } = await fixture.tenant.diff({
      ...{ from: START, to: START + 214, axis: 'recorded', fadedBelow: 0, limit: 10 },
      filter: {},
    });
    expect(erased).toEqual({ deleted: 0, expired: 215 });
  });
});

test('a memory outside its time of validity is hidden from queries and lists, not from its id', async () => {
  await using fixture = await openTestEngine();
  const { tenant, clock } = fixture;
  const { id } = await fixture.add({ content: 'The quokka is mayor.', validFrom: START + 10, validTo: START + 20 });
  const isFound = async () => (await tenant.query({ query: 'quokka', k: 5, filter: {} })).hits.length === 1;
  for (const [at, visible] of [
    [9, false],
    [10, true],
    [19, true],
    [20, false],
  ] as const) {
    clock.set(START + at);
    expect(await isFound(), `at ${at}`).toBe(visible);
    expect(await tenant.listMemories({}, { limit: 5, offset: 0 })).toHaveLength(visible ? 1 : 0);
    expect((await tenant.getMemory(id)).id).toBe(id);
  }
});

test('a name that several erased memories share is settled once for all of them', async () => {
  await using fixture = await openTestEngine();
  const spellings = { gone: ['Ada Lovelace', 'ADA LOVELACE'], stays: ['ada lovelace'] };
  for (const [tag, names] of Object.entries(spellings))
    for (const name of names)
      await fixture.add({ content: `A note on ${name}.`, entities: [name, 'Only Here'], tags: [tag] });
  await fixture.drain();
  const named = () =>
    fixture.all(`SELECT name, label, mentions FROM entities WHERE name IN ('ada lovelace', 'only here') ORDER BY name`);
  expect(named()).toEqual([
    { name: 'ada lovelace', label: 'Ada Lovelace', mentions: 3 },
    { name: 'only here', label: 'Only Here', mentions: 3 },
  ]);
  await fixture.tenant.deleteMemories({ tags: ['gone'] });
  expect(named()).toEqual([
    { name: 'ada lovelace', label: 'ada lovelace', mentions: 1 },
    { name: 'only here', label: 'Only Here', mentions: 1 },
  ]);
  await fixture.tenant.deleteMemories({ tags: ['stays'] });
  expect(named()).toEqual([]);
  expectNoOrphans(fixture.store);
});

test('neither an Idempotency-Key nor the hash of its body is in a file, before an erasure or after it', async () => {
  await using fixture = await openTestEngine();
  const nowhere = { ofKey: [], ofBody: [] };
  expect(await searchIdempotencyTraces(fixture)).toEqual({ kept: nowhere, erased: nowhere });
  expect(fixture.all('SELECT body_hash, reply FROM idempotency_keys')).toEqual([{ body_hash: null, reply: null }]);
});
