import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import type { IdempotencyClaim } from '../../../src/engine/types.ts';
import { isEngineError } from '../../../src/engine/errors.ts';
import { setStatus } from '../../../src/engine/store/dynamics.ts';
import { keptHash } from '../../../src/engine/store/duplicates.ts';
import { boundTenant } from '../../../src/engine/tenant/bound-tenant.ts';
import { contentHash } from '../../../src/engine/text/content-hash.ts';
import {
  dumpTables,
  expectNoOrphans,
  idsWithWord,
  newMemory,
  openTestEngine,
  START,
  type TestEngine,
  type TestMemory,
} from '../../support/engine-fixture.ts';

const claimOf = (key: string, body: string): IdempotencyClaim => ({
  key,
  route: 'POST /memory/add',
  bodyHash: createHash('sha256').update(body).digest(),
});

const addOne = async ({ tenant }: TestEngine, memory: TestMemory) =>
  (await tenant.addMemories([newMemory(memory)])).outcomes[0]!;

/** The context column of a memory's words, as the two texts that went into it. */
function contextWords(fixture: TestEngine, words: readonly string[]): Record<string, string[]> {
  const contentOf = new Map(
    fixture
      .all<{ id: string; content: string }>('SELECT id, content FROM memories')
      .map((row) => [row.id, row.content]),
  );
  return Object.fromEntries(
    words.map((word) => [word, idsWithWord(fixture, word, 'context').map((id) => contentOf.get(id)!)]),
  );
}

describe('an accepted memory', () => {
  test('is searchable in the commit that stores it, before it is encoded', async () => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add({ content: 'The quokka lives on Rottnest Island.' });
    const { hits, degraded } = await fixture.tenant.query({ query: 'quokka', k: 5, filter: {} });
    expect(hits.map((hit) => hit.memory.id)).toEqual([id]);
    expect(hits[0]!.memory.state).toBe('queued');
    expect(degraded).toBe(false);
  });

  test('keeps its text and every field as given', async () => {
    await using fixture = await openTestEngine();
    const given = newMemory({
      content: '  Zwölf \u0000 Boxkämpfer\r\n\u202e 𝄞 e\u0301 ',
      userId: 'anna',
      sessionId: 's1',
      tags: ['a', 'b b'],
      files: ['x.txt'],
      metadata: { nested: { deep: [1, null, 'x'] }, ['__proto__']: 'kept' },
      type: 'note',
      title: 'Title',
      gist: 'Gist',
      entities: ['Anna'],
      eventTime: START - DAY_MS,
      validFrom: START - 1,
      validTo: START + DAY_MS,
      expiresAt: START + 2 * DAY_MS,
      importance: 0.7,
      confidence: 0.6,
      externalId: 'ext-1',
    });
    const { id } = await fixture.add(given);
    await fixture.drain();
    const memory = await fixture.tenant.getMemory(id);
    expect(memory).toMatchObject({
      ...given,
      state: 'ready',
      status: 'active',
      salience: 0.7,
      strength: 1,
      accessCount: 0,
      createdAt: START,
      updatedAt: START,
      lastSeenAt: START,
      version: 1,
    });
    expect(Object.hasOwn(memory.metadata, '__proto__')).toBe(true);
  });

  test('refused items spare the others of the same request', async () => {
    await using fixture = await openTestEngine();
    await fixture.add({ content: 'first', externalId: 'x' });
    const { outcomes } = await fixture.tenant.addMemories([
      newMemory({ content: 'before' }),
      newMemory({ content: 'other text', externalId: 'x' }),
      newMemory({ content: 'after' }),
    ]);
    expect(outcomes.map((outcome) => outcome.kind)).toEqual(['accepted', 'rejected', 'accepted']);
    expect(fixture.get('SELECT count(*) FROM memories')).toBe(3);
    expect(fixture.get('SELECT count(*) FROM jobs')).toBe(3);
  });
});

describe('an exact duplicate', () => {
  test('is told by its text: one that only shares what is kept of a hash is stored', async () => {
    await using fixture = await openTestEngine();
    const other = await fixture.add({ content: 'said before' });
    fixture.store.write(() =>
      fixture.store
        .prepare('UPDATE memories SET content_hash = ? WHERE id = ?')
        .run(keptHash(contentHash('said twice')), other.id),
    );
    const { id } = await fixture.add({ content: 'said twice' });
    expect(await addOne(fixture, { content: 'said twice' })).toMatchObject({ kind: 'duplicate', id });
    expect(fixture.all('SELECT content FROM memories')).toHaveLength(2);
  });

  test.each([
    ['the same text', 'Café au lait', 'Café au lait', {}],
    ['other white space', 'Café  au\n\tlait ', ' Café au lait', {}],
    ['accents composed another way', 'Cafe\u0301 au lait', 'Caf\u00e9 au lait', {}],
    ['the same event time, given twice', 'It rained', 'It rained', { eventTime: START - 5 }],
    ['the same session', 'It rained', 'It rained', { sessionId: 's' }],
  ])('%s is told, reinforced and not stored again', async (_, first, second, fields) => {
    await using fixture = await openTestEngine();
    const { id, memoryNo } = await fixture.add({ content: first, userId: 'u', ...fields });
    fixture.clock.advanceDays(10);
    expect(await addOne(fixture, { content: second, userId: 'u', ...fields })).toMatchObject({ kind: 'duplicate', id });
    expect(fixture.get('SELECT count(*) FROM memories')).toBe(1);
    expect(fixture.get('SELECT count(*) FROM jobs')).toBe(1);
    expect((await fixture.tenant.getMemory(id)).salience).toBeCloseTo(0.4 * Math.exp(-0.005 * 10) + 0.1, 10);
    expect(fixture.get('SELECT last_seen_at FROM memory_dynamics WHERE seq = ?', memoryNo)).toBe(fixture.clock.now());
  });

  test('within one request is told too', async () => {
    await using fixture = await openTestEngine();
    const { outcomes, token } = await fixture.tenant.addMemories([
      newMemory({ content: 'twice' }),
      newMemory({ content: 'twice' }),
    ]);
    expect(outcomes.map(({ kind }) => kind)).toEqual(['accepted', 'duplicate']);
    expect(token).not.toBeNull();
  });

  test.each([
    ['another user', { userId: 'v' }],
    ['another session', { sessionId: 't' }],
    ['a given event time', { eventTime: START }],
    ['another case', { content: 'it rained' }],
  ])('is not one with %s', async (_, difference) => {
    await using fixture = await openTestEngine();
    await fixture.add({ content: 'It rained', userId: 'u', sessionId: 's' });
    expect(await addOne(fixture, { content: 'It rained', userId: 'u', sessionId: 's', ...difference })).toMatchObject({
      kind: 'accepted',
    });
  });

  test('is not one of another given event time', async () => {
    await using fixture = await openTestEngine();
    await fixture.add({ content: 'It rained', eventTime: START - 1 });
    expect(await addOne(fixture, { content: 'It rained', eventTime: START - 2 })).toMatchObject({ kind: 'accepted' });
  });

  test('is not one that ends sooner or is valid at other times: the new one would go with it', async () => {
    await using fixture = await openTestEngine();
    const content = 'The bakery opens at seven.';
    const now = fixture.clock.now();
    const first = await fixture.add({ content, expiresAt: now + 4_000 });
    const lasting = await fixture.add({ content });
    const past = await fixture.add({ content, validTo: now - 1 });
    expect(new Set([first.id, lasting.id, past.id]).size).toBe(3);
    const again = await addOne(fixture, { content, expiresAt: now + 4_000 });
    expect(again).toMatchObject({ kind: 'duplicate', id: first.id });
    fixture.clock.advance(5_000);
    const { hits } = await fixture.tenant.query({ query: 'bakery', k: 5, filter: {} });
    expect(hits.map((hit) => hit.memory.id)).toEqual([lasting.id]);
  });

  test('is never a superseded or an expired memory', async () => {
    await using fixture = await openTestEngine();
    const superseded = await fixture.add({ content: 'old truth' });
    fixture.store.write(() => setStatus(fixture.store, superseded.memoryNo, 'superseded'));
    expect(await addOne(fixture, { content: 'old truth' })).toMatchObject({ kind: 'accepted' });
    await fixture.add({ content: 'short lived', expiresAt: START + 1_000 });
    fixture.clock.advance(1_000);
    expect(await addOne(fixture, { content: 'short lived' })).toMatchObject({ kind: 'accepted' });
  });

  test('is never one that was decided against: saying it again makes a memory that is found', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const [tea, coffee] = [
      await fixture.add({ content: 'Ben drinks tea' }),
      await fixture.add({ content: 'Ben drinks coffee' }),
    ];
    await tenant.contradictMemories({ a: tea.id, b: coffee.id, winner: coffee.id });
    const again = await fixture.add({ content: 'Ben drinks tea' });
    expect(again.id).not.toBe(tea.id);
    const { hits } = await tenant.query({ query: 'who drinks tea', k: 5, filter: {}, minScore: 0 });
    expect(hits.map(({ memory }) => memory.id)).toContain(again.id);
  });

  test('brings an archived memory back', async () => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add({ content: 'put away' });
    await fixture.tenant.patchMemory(id, { status: 'archived' });
    expect(await addOne(fixture, { content: 'put away' })).toMatchObject({ kind: 'duplicate', id });
    expect((await fixture.tenant.getMemory(id)).status).toBe('active');
  });

  test('has no token, as there is nothing to wait for', async () => {
    await using fixture = await openTestEngine();
    await fixture.add({ content: 'said before' });
    expect((await fixture.tenant.addMemories([newMemory({ content: 'said before' })])).token).toBeNull();
  });
});

describe('an external id', () => {
  test('with the same text is a duplicate, whatever else differs', async () => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add({ content: 'a', externalId: 'x', sessionId: 's' });
    expect(await addOne(fixture, { content: 'a', externalId: 'x', sessionId: 't' })).toMatchObject({
      kind: 'duplicate',
      id,
    });
  });

  test('stays with a memory that was decided against: a source that is read in again does not bring it back', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const wrong = await fixture.add({ content: 'The pool is open', externalId: 'page-1' });
    const right = await fixture.add({ content: 'The pool is closed' });
    await tenant.contradictMemories({ a: wrong.id, b: right.id, winner: right.id });
    expect(await addOne(fixture, { content: 'The pool is open', externalId: 'page-1' })).toMatchObject({
      kind: 'duplicate',
      id: wrong.id,
    });
    expect((await tenant.getMemory(wrong.id)).status).toBe('contradicted');
  });

  test('with another text is refused, and the refusal names the memory but not its text', async () => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add({ content: 'secret words', externalId: 'x' });
    const outcome = await addOne(fixture, { content: 'other', externalId: 'x' });
    expect(outcome).toMatchObject({ kind: 'rejected', error: { code: 'conflict' } });
    expect(JSON.stringify(outcome)).toContain(id);
    expect(JSON.stringify(outcome)).not.toContain('secret');
  });

  test('belongs to a user: another one may use it', async () => {
    await using fixture = await openTestEngine();
    await fixture.add({ content: 'a', externalId: 'x', userId: 'u' });
    expect(await addOne(fixture, { content: 'b', externalId: 'x', userId: 'v' })).toMatchObject({ kind: 'accepted' });
  });

  test.each(['the same text', 'another text'])('of an expired memory is free again, with %s', async (content) => {
    await using fixture = await openTestEngine();
    await fixture.add({ content: 'the same text', externalId: 'x', expiresAt: START + 1 });
    fixture.clock.advance(1);
    expect(await addOne(fixture, { content, externalId: 'x' })).toMatchObject({ kind: 'accepted' });
  });
});

describe('an Idempotency-Key', () => {
  test('with the same body gives the same reply and writes nothing', async () => {
    await using fixture = await openTestEngine();
    const idempotency = claimOf('k', 'body');
    const first = await fixture.tenant.addMemories([newMemory({ content: 'once' })], { idempotency });
    const before = dumpTables(fixture.store);
    fixture.clock.advanceDays(1);
    const second = await fixture.tenant.addMemories([newMemory({ content: 'once' })], { idempotency });
    expect(second).toEqual({ ...first, replayed: true });
    expect(dumpTables(fixture.store)).toEqual(before);
  });

  test('with another body is unprocessable and writes nothing', async () => {
    await using fixture = await openTestEngine();
    await fixture.tenant.addMemories([newMemory({ content: 'once' })], { idempotency: claimOf('k', 'body') });
    const before = dumpTables(fixture.store);
    await expect(
      fixture.tenant.addMemories([newMemory({ content: 'else' })], { idempotency: claimOf('k', 'other') }),
    ).rejects.toSatisfy((error) => isEngineError(error, 'unprocessable'));
    expect(dumpTables(fixture.store)).toEqual(before);
  });

  test('is one use a route', async () => {
    await using fixture = await openTestEngine();
    await fixture.tenant.addMemories([newMemory({ content: 'one' })], { idempotency: claimOf('k', 'body') });
    const elsewhere = { ...claimOf('k', 'other'), route: 'POST /memory/add/batch' };
    const reply = await fixture.tenant.addMemories([newMemory({ content: 'two' })], { idempotency: elsewhere });
    expect(reply.replayed).toBe(false);
  });

  test('whose memory was deleted does not bring it back', async () => {
    await using fixture = await openTestEngine();
    const idempotency = claimOf('k', 'body');
    const items = [newMemory({ content: 'one' }), newMemory({ content: 'two' })];
    const { outcomes } = await fixture.tenant.addMemories(items, { idempotency });
    const [, second] = outcomes;
    const receipt = await fixture.tenant.deleteMemory((second as { id: string }).id);
    expect(receipt.storedReplies).toBe(1);
    await expect(fixture.tenant.addMemories(items, { idempotency })).rejects.toSatisfy((error) =>
      isEngineError(error, 'conflict'),
    );
    expect(fixture.get('SELECT count(*) FROM memories')).toBe(1);
    expect(fixture.get('SELECT reply FROM idempotency_keys')).toBeNull();
  });

  test('whose stored reply has not an outcome for each item is a conflict: the others cannot be told apart', async () => {
    await using fixture = await openTestEngine();
    const idempotency = claimOf('k', 'body');
    const [one, two] = [newMemory({ content: 'one' }), newMemory({ content: 'two' })];
    await fixture.tenant.addMemories([one], { idempotency });
    await expect(fixture.tenant.addMemories([one, two], { idempotency })).rejects.toSatisfy((error) =>
      isEngineError(error, 'conflict'),
    );
    expect(fixture.get('SELECT count(*) FROM memories')).toBe(1);
  });

  test('is kept although the request is refused for another reason later', async () => {
    await using fixture = await openTestEngine({ settings: { OM_MAX_BACKLOG: '1' } });
    const idempotency = claimOf('k', 'body');
    await fixture.add({ content: 'fills the backlog' });
    await expect(fixture.tenant.addMemories([newMemory({ content: 'one' })], { idempotency })).rejects.toSatisfy(
      (error) => isEngineError(error, 'unavailable'),
    );
    await fixture.drain();
    fixture.clock.advance(500);
    const reply = await fixture.tenant.addMemories([newMemory({ content: 'one' })], { idempotency });
    expect(reply).toMatchObject({ replayed: false, outcomes: [{ kind: 'accepted' }] });
  });
});

describe('an item that rests on others', () => {
  const sourcesOf = async ({ tenant }: TestEngine, id: string) =>
    (await tenant.listLinks(id)).filter(({ type, direction }) => type === 'derived_from' && direction === 'out');

  test('is linked in the commit that stores it, and is erased together with what it rests on', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const { id: older } = await fixture.add({ content: 'The ferry is late.' });
    const items = ['The ferry was cancelled.', 'Ferries are late, then cancelled.'].map((content) =>
      newMemory({ content }),
    );
    const { outcomes } = await tenant.addMemories(items, { derived: [{ item: 1, from: [0, older] }] });
    const [source, sum] = outcomes.map((outcome) => (outcome.kind === 'rejected' ? '' : outcome.id)) as [
      string,
      string,
    ];
    expect((await sourcesOf(fixture, sum)).map(({ id, automatic }) => [id, automatic]).sort()).toEqual(
      [
        [source, true],
        [older, true],
      ].sort(),
    );
    await tenant.deleteMemory(older);
    expect(fixture.all<{ id: string }>('SELECT id FROM memories').map(({ id }) => id)).toEqual([source]);
    expectNoOrphans(fixture.store);
  });

  test('is not stored without what it rests on', async () => {
    await using fixture = await openTestEngine();
    const sum = newMemory({ content: 'Ferries are late.' });
    const { outcomes } = await fixture.tenant.addMemories([sum], { derived: [{ item: 0, from: ['nothing'] }] });
    expect(outcomes).toMatchObject([{ kind: 'rejected', error: { code: 'not_found' } }]);
    const refused = { kind: 'rejected', error: { code: 'conflict', message: 'refused' } } as const;
    const both = await fixture.tenant.addMemories([refused, sum], { derived: [{ item: 1, from: [0] }] });
    expect(both.outcomes).toEqual([refused, refused]);
    expect(fixture.get('SELECT count(*) FROM memories')).toBe(0);
  });

  test('is no way to a memory outside the bounds of its key', async () => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add({ content: 'The code of the safe is 4711.', userId: 'uma' });
    const bound = boundTenant(fixture.tenant, { userId: 'vic' });
    const sum = newMemory({ content: 'There is a safe.', userId: 'vic' });
    await expect(bound.addMemories([sum], { derived: [{ item: 0, from: [id] }] })).rejects.toThrow(/no memory/);
  });
});

describe('the backlog cap', () => {
  test('refuses what would go over it with a time to wait, and lets in what fits', async () => {
    await using fixture = await openTestEngine({ settings: { OM_MAX_BACKLOG: '3' } });
    const { tenant } = fixture;
    await tenant.addMemories([newMemory({ content: 'a' }), newMemory({ content: 'b' })]);
    await expect(tenant.addMemories([newMemory({ content: 'c' }), newMemory({ content: 'd' })])).rejects.toMatchObject({
      code: 'unavailable',
      retryAfterMs: expect.any(Number) as number,
    });
    expect(await addOne(fixture, { content: 'c' })).toMatchObject({ kind: 'accepted' });
    await fixture.drain();
    fixture.clock.advance(500);
    expect((await tenant.addMemories(['e', 'f', 'g'].map((content) => newMemory({ content })))).outcomes).toHaveLength(
      3,
    );
  });

  test('is not counted anew for every add that comes over it, which would hold up all that others write', async () => {
    await using fixture = await openTestEngine({ settings: { OM_MAX_BACKLOG: '2' } });
    const { tenant, clock } = fixture;
    const refused = { code: 'unavailable', message: expect.stringContaining('2 jobs wait') as string };
    const add = (content: string) => tenant.addMemories([newMemory({ content })]);
    await tenant.addMemories([newMemory({ content: 'a' }), newMemory({ content: 'b' })]);
    await expect(add('c')).rejects.toMatchObject(refused);
    // There is room now, which only a count would tell.
    await fixture.drain();
    clock.advance(499);
    await expect(add('c')).rejects.toMatchObject(refused);
    clock.advance(1);
    expect((await add('c')).outcomes).toMatchObject([{ kind: 'accepted' }]);
    await expect(tenant.addMemories(['d', 'e'].map((content) => newMemory({ content })))).rejects.toMatchObject({
      message: expect.stringContaining('1 jobs wait') as string,
    });
    expect((await add('d')).outcomes, 'what is known to fit is let in').toMatchObject([{ kind: 'accepted' }]);
    await fixture.drain();
    clock.advance(-3_600_000);
    expect((await add('e')).outcomes, 'a clock that was set back').toMatchObject([{ kind: 'accepted' }]);
  });
});

describe('the context of a memory', () => {
  test('holds the two before it in its session, in order of event time, and is rewritten for what comes after', async () => {
    await using fixture = await openTestEngine();
    const add = (word: string, minute: number, fields = {}) =>
      fixture.add({ content: word, userId: 'u', sessionId: 's', eventTime: START + minute, ...fields });
    await add('alpha', 1);
    await add('bravo', 2);
    await add('delta', 4);
    await add('echo', 5);
    await add('stranger', 3, { sessionId: 't' });
    await add('foreigner', 3, { userId: 'v' });
    await fixture.add({ content: 'loner' });
    await fixture.add({ content: 'hermit' });
    expect(contextWords(fixture, ['alpha', 'bravo', 'delta', 'echo', 'stranger', 'foreigner', 'loner'])).toEqual({
      alpha: ['bravo', 'delta'],
      bravo: ['delta', 'echo'],
      delta: ['echo'],
      echo: [],
      stranger: [],
      foreigner: [],
      loner: [],
    });
    await add('charlie', 3);
    expect(contextWords(fixture, ['alpha', 'bravo', 'charlie', 'delta'])).toEqual({
      alpha: ['bravo', 'charlie'],
      bravo: ['delta', 'charlie'],
      charlie: ['delta', 'echo'],
      delta: ['echo'],
    });
    expectNoOrphans(fixture.store);
  });

  test('of equal event times follows the order of arrival', async () => {
    await using fixture = await openTestEngine();
    for (const content of ['uno', 'dos', 'tres', 'cuatro'])
      await fixture.add({ content, sessionId: 's', eventTime: START });
    expect(contextWords(fixture, ['uno', 'dos', 'tres'])).toEqual({
      uno: ['dos', 'tres'],
      dos: ['tres', 'cuatro'],
      tres: ['cuatro'],
    });
  });

  test('holds at most the last 1,000 characters, and no half of a surrogate pair', async () => {
    await using fixture = await openTestEngine();
    await fixture.add({ content: `faraway ${'🦘'.repeat(400)}`, sessionId: 's' });
    fixture.clock.advance(1);
    await fixture.add({ content: `near ${'wombat '.repeat(30)}`, sessionId: 's' });
    fixture.clock.advance(1);
    await fixture.add({ content: 'here', sessionId: 's' });
    expect(contextWords(fixture, ['faraway', 'near'])).toEqual({
      faraway: [expect.stringContaining('near')],
      near: ['here'],
    });
    expectNoOrphans(fixture.store);
  });
});
