import { describe, expect, test } from 'vitest';
import { isEngineError } from '../../../src/engine/errors.ts';
import { encodeMemories } from '../../../src/engine/steps/encode.ts';
import { setStatus } from '../../../src/engine/store/dynamics.ts';
import { claimJobs } from '../../../src/engine/store/job-claims.ts';
import { shownEntities, shownGist } from '../../../src/engine/entities/skim.ts';
import { dumpTables, expectNoOrphans, idsWithWord, openTestEngine, START } from '../../support/engine-fixture.ts';
import { startFakeProvider } from '../../support/fake-provider.ts';

const conflict = (error: unknown) => isEngineError(error, 'conflict');

describe('a PATCH', () => {
  test('keeps what it replaced, bumps the version, and leaves the rest alone', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const { id } = await fixture.add({
      content: 'old words',
      tags: ['a'],
      type: 'note',
      metadata: { kept: 1, dropped: 2, replaced: { deep: true } },
    });
    await fixture.drain();
    clock.advance(1_000);
    const before = await tenant.getMemory(id);
    const after = await tenant.patchMemory(id, {
      tags: ['b', 'c'],
      type: null,
      metadata: { dropped: null, replaced: { other: 1 }, ['__proto__']: 'a key like any other' },
      confidence: 0.5,
      eventTime: START - 7,
      validTo: START + 1,
    });
    expect(after).toEqual({
      ...before,
      tags: ['b', 'c'],
      type: null,
      metadata: Object.fromEntries([
        ['kept', 1],
        ['replaced', { other: 1 }],
        ['__proto__', 'a key like any other'],
      ]),
      confidence: 0.5,
      eventTime: START - 7,
      validTo: START + 1,
      version: 2,
      updatedAt: START + 1_000,
    });
    expect(await tenant.listRevisions(id)).toEqual([
      {
        version: 1,
        replacedAt: START + 1_000,
        writtenBy: null,
        replaced: {
          tags: ['a'],
          type: 'note',
          metadata: { kept: 1, dropped: 2, replaced: { deep: true } },
          confidence: 1,
          eventTime: START,
          validTo: null,
        },
      },
    ]);
    await tenant.patchMemory(id, { type: 'again' });
    expect((await tenant.listRevisions(id)).map(({ version }) => version)).toEqual([2, 1]);
  });

  test('that changes nothing writes nothing', async () => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add({ content: 'the same', tags: ['a'], metadata: { x: 1 }, title: 't' });
    await fixture.drain();
    const before = dumpTables(fixture.store);
    fixture.clock.advance(1);
    for (const patch of [
      {},
      { content: 'the same', tags: ['a'] },
      { metadata: { x: 1, y: null } },
      { status: 'active' as const, title: 't' },
    ]) {
      expect((await fixture.tenant.patchMemory(id, patch)).version).toBe(1);
    }
    expect(dumpTables(fixture.store)).toEqual(before);
  });

  test('of another version than the caller saw is refused', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const { id } = await fixture.add({ content: 'a' });
    await tenant.patchMemory(id, { content: 'b' }, { ifVersion: 1 });
    await expect(tenant.patchMemory(id, { content: 'c' }, { ifVersion: 1 })).rejects.toSatisfy(conflict);
    expect((await tenant.getMemory(id)).content).toBe('b');
    await expect(tenant.patchMemory('no such id', {})).rejects.toMatchObject({ code: 'not_found' });
  });

  test('of the text makes the new words found and the old ones not, its own and its neighbours', async () => {
    await using fixture = await openTestEngine();
    const ids: string[] = [];
    for (const content of ['alpha', 'bravo', 'charlie', 'delta', 'echo']) {
      ids.push((await fixture.add({ content, sessionId: 's', eventTime: START + ids.length })).id);
    }
    const [alpha, bravo, charlie, delta] = ids as [string, string, string, string];
    await fixture.tenant.patchMemory(bravo, { content: 'zulu' });
    expect(idsWithWord(fixture, 'bravo')).toEqual([]);
    expect(idsWithWord(fixture, 'zulu', 'content')).toEqual([bravo]);
    expect(idsWithWord(fixture, 'zulu', 'context')).toEqual([charlie, delta]);
    expect(idsWithWord(fixture, 'alpha', 'context')).toEqual([bravo, charlie]);
    expect(idsWithWord(fixture, 'alpha', 'content')).toEqual([alpha]);
    expectNoOrphans(fixture.store);
  });

  test.each([
    ['later', 0, 25],
    ['earlier', 4, 5],
    ['to the end', 1, 99],
    ['to the front', 3, -1],
    ['a little', 2, 21],
  ])('of the event time moves it %s in the context of its session', async (_, index, eventTime) => {
    await using fixture = await openTestEngine();
    const words = ['alpha', 'bravo', 'charlie', 'delta', 'echo'];
    const ids: string[] = [];
    for (const content of words)
      ids.push((await fixture.add({ content, sessionId: 's', eventTime: START + 10 * ids.length })).id);
    await fixture.tenant.patchMemory(ids[index]!, { eventTime: START + eventTime });
    const times = words
      .map((word, n) => ({ word, n, at: n === index ? eventTime : 10 * n }))
      .sort((a, b) => a.at - b.at);
    for (const [place, { word }] of times.entries()) {
      const after = times.slice(place + 1, place + 3).map(({ n }) => ids[n]!);
      expect(idsWithWord(fixture, word, 'context').toSorted(), word).toEqual(after.toSorted());
    }
  });

  test('of tags and titles is found at once', async () => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add({ content: 'text', tags: ['marsupial'], title: 'Heading' });
    await fixture.tenant.patchMemory(id, { tags: ['monotreme'], title: 'Caption' });
    expect(['marsupial', 'heading', 'monotreme', 'caption'].map((word) => idsWithWord(fixture, word).length)).toEqual([
      0, 0, 1, 1,
    ]);
  });

  test('of the text takes with it what was read off the old one, and what was stated about it', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const { id } = await fixture.add({ content: 'Marie Curie discovered radium in Paris.', gist: 'radium' });
    expect((await tenant.getMemory(id)).gist).toBe('radium');
    expect(shownEntities(await tenant.getMemory(id))).toContain('Marie Curie');
    const patched = await tenant.patchMemory(id, { content: 'Ada Lovelace wrote a program in London.' });
    expect(patched).toMatchObject({ state: 'queued', version: 2 });
    expect(shownGist(patched)).toBe('Ada Lovelace wrote a program in London.');
    expect(shownEntities(patched).join()).toContain('Lovelace');
    expect(shownEntities(patched).join()).not.toContain('Curie');
  });

  test('while the old text is being encoded wins', async () => {
    await using fixture = await openTestEngine();
    const { id, memoryNo } = await fixture.add({ content: 'I feel so happy, I love it!' });
    const late = fixture.store.write(() =>
      claimJobs(fixture.store, { step: 'encode', limit: 1, owner: 'o', leaseMs: 1_000, now: START }),
    );
    await fixture.tenant.patchMemory(id, { content: 'How to bake bread: first mix the flour, step by step.' });
    expect((await encodeMemories(fixture.batch, late)).advanced).toEqual([]);
    await fixture.drain();
    expect(await fixture.tenant.getMemory(id)).toMatchObject({ primarySector: 'procedural', state: 'ready' });
    expect(fixture.get('SELECT count(*) FROM jobs WHERE memory = ?', memoryNo)).toBe(1);
  });

  test('of metadata.sector forces it, and its removal gives the text its own sector back', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const { id } = await fixture.add({ content: 'I feel so happy, I love it!' });
    await fixture.drain();
    expect((await tenant.getMemory(id)).primarySector).toBe('emotional');
    await tenant.patchMemory(id, { metadata: { sector: 'reflective' } });
    await fixture.drain();
    expect(await tenant.getMemory(id)).toMatchObject({ primarySector: 'reflective', decayLambda: 0.001 });
    await tenant.patchMemory(id, { metadata: { sector: null } });
    await fixture.drain();
    expect(await tenant.getMemory(id)).toMatchObject({ primarySector: 'emotional', decayLambda: 0.02 });
  });

  test('of the importance is the salience from now on', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const { id } = await fixture.add({ content: 'A plain fact.' });
    await fixture.drain();
    clock.advanceDays(100);
    expect(await tenant.patchMemory(id, { importance: 0.9 })).toMatchObject({ salience: 0.9, importance: 0.9 });
    clock.advanceDays(10);
    const { salience, decayLambda } = await tenant.getMemory(id);
    expect(salience).toBeCloseTo(0.9 * Math.exp(-10 * decayLambda), 10);
    await tenant.patchMemory(id, { importance: null });
    expect((await tenant.getMemory(id)).salience).toBe(salience);
  });

  test('archives and brings back, but changes no superseded memory', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const { id, memoryNo } = await fixture.add({ content: 'a quokka' });
    const found = async () => (await tenant.query({ query: 'quokka', k: 1, filter: {} })).hits.length;
    await tenant.patchMemory(id, { status: 'archived' });
    expect(await found()).toBe(0);
    expect((await tenant.listRevisions(id))[0]!.replaced).toEqual({ status: 'active' });
    await tenant.patchMemory(id, { status: 'active' });
    expect(await found()).toBe(1);
    fixture.store.write(() => setStatus(fixture.store, memoryNo, 'superseded'));
    await expect(tenant.patchMemory(id, { status: 'active' })).rejects.toSatisfy(conflict);
    expect(await tenant.getMemory(id)).toMatchObject({ status: 'superseded', version: 3 });
  });

  test('of the text forgets the paid vectors of the old one', async () => {
    const provider = await startFakeProvider({ dimensions: 256 });
    try {
      await using fixture = await openTestEngine({
        settings: { OM_EMBEDDINGS: 'openai', OM_OPENAI_BASE_URL: provider.url, OM_EMBED_LINGER_MS: '0' },
      });
      const { id } = await fixture.add({ content: 'The first text.' });
      await fixture.drain();
      for (let patch = 0; patch < 3; patch += 1) {
        await fixture.tenant.patchMemory(id, { content: `Another text, number ${patch}.` });
        await fixture.drain();
        expect(fixture.get('SELECT count(*) FROM vectors')).toBe(1);
      }
      await fixture.tenant.patchMemory(id, { content: 'The last one.' });
      expect(fixture.get('SELECT count(*) FROM vectors')).toBe(0);
    } finally {
      await provider.close();
    }
  });
});

test('a memory that is changed again and again keeps its newest ended jobs', async () => {
  await using fixture = await openTestEngine();
  const { tenant, store } = fixture;
  const { id } = await fixture.add({ content: 'first' });
  await fixture.drain();
  store.write(() =>
    store
      .prepare(
        `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 249)
         INSERT INTO jobs (uuid, kind, memory, step, state, run_at, created_at, updated_at, finished_at)
         SELECT randomblob(16), 'memory', 1, 'done', 'done', 0, 0, 0, 1 FROM numbers`,
      )
      .run(),
  );
  const ended: unknown[] = [];
  for (const content of ['second', 'third', 'fourth']) {
    await tenant.patchMemory(id, { content });
    ended.push(fixture.get("SELECT count(*) FROM jobs WHERE state = 'done'"));
    await fixture.drain();
  }
  expect(ended).toEqual([150, 100, 100]);
});
