import { describe, expect, test } from 'vitest';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import { decayMemories } from '../../../src/engine/upkeep/decay-memories.ts';
import { shownGist } from '../../../src/engine/entities/skim.ts';
import type { AsOf, Hit, MemoryQuery } from '../../../src/engine/types.ts';
import { newMemory, openTestEngine, START, type TestEngine } from '../../support/engine-fixture.ts';

const day = (number: number) => START + number * DAY_MS;

async function ask(
  { tenant }: TestEngine,
  query: string,
  asOf: AsOf | undefined,
  more: Partial<MemoryQuery> = {},
): Promise<readonly Hit[]> {
  const options = { k: 10, filter: {}, reinforce: false, explain: true, minScore: 0, relativeFloor: 0, perDocument: 0 };
  return (await tenant.query({ query, ...options, maxHops: 0, asOf, ...more })).hits;
}

const textsOf = (hits: readonly Hit[]) => hits.map(({ memory }) => memory.content).sort();

/** A question about one memory only. */
const only = async (fixture: TestEngine, query: string, asOf: AsOf) => {
  const hits = await ask(fixture, query, asOf);
  expect(hits).toHaveLength(1);
  return hits[0]!.memory;
};

describe('looking back along what was valid', () => {
  test('finds what had happened and held then, from its first moment to before its last', async () => {
    await using fixture = await openTestEngine();
    fixture.clock.set(day(100));
    await fixture.add({ content: 'meeting that happened', eventTime: day(10) });
    await fixture.add({ content: 'meeting room rule', eventTime: day(1), validFrom: day(20), validTo: day(30) });
    await fixture.add({ content: 'meeting yet to come', eventTime: day(200) });
    const at = async (time: number) => textsOf(await ask(fixture, 'meeting', { valid: time }));
    expect(await at(day(10) - 1)).toEqual([]);
    expect(await at(day(10))).toEqual(['meeting that happened']);
    expect(await at(day(20))).toEqual(['meeting room rule', 'meeting that happened']);
    expect(await at(day(30) - 1)).toEqual(['meeting room rule', 'meeting that happened']);
    expect(await at(day(30))).toEqual(['meeting that happened']);
    expect(await at(day(200))).toEqual(['meeting that happened', 'meeting yet to come']);
  });

  test('finds one of a chain at every moment: the one that held then, at its full score', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const cities = [
      { content: 'Ann lives in Lisbon', eventTime: day(0) },
      { content: 'Ann lives in Porto', eventTime: day(10) },
      { content: 'Ann lives in Braga', eventTime: day(20) },
    ];
    const ids: string[] = [];
    for (const city of cities) {
      ids.push((await fixture.add(city)).id);
      clock.set(city.eventTime + DAY_MS);
      if (ids.length > 1) await tenant.supersedeMemory({ oldId: ids.at(-2)!, newId: ids.at(-1)! });
    }
    const expected = [
      [day(0) - 1, []],
      [day(0), ['Ann lives in Lisbon']],
      [day(10) - 1, ['Ann lives in Lisbon']],
      [day(10), ['Ann lives in Porto']],
      [day(20) - 1, ['Ann lives in Porto']],
      [day(20), ['Ann lives in Braga']],
      [day(500), ['Ann lives in Braga']],
    ] as const;
    for (const [valid, texts] of expected) {
      const hits = await ask(fixture, 'where does Ann live', { valid }, { rerank: 'none' });
      expect(textsOf(hits)).toEqual(texts);
      // What was true then is not weaker for what came later.
      expect(hits.flatMap(({ explain }) => explain!.adjustments)).toEqual([]);
    }
  });

  test('never finds one whose successor begins before it', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const wrong = await fixture.add({ content: 'The lease starts late', eventTime: day(5), validFrom: day(5) });
    const right = await fixture.add({ content: 'The lease starts early', eventTime: day(5), validFrom: day(3) });
    await tenant.supersedeMemory({ oldId: wrong.id, newId: right.id });
    expect(textsOf(await ask(fixture, 'lease', { valid: day(6) }))).toEqual(['The lease starts early']);
  });

  test('leaves contradicted and archived memories hidden, unless deep recall asks for them', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const right = await fixture.add({ content: 'parrot speaks' });
    const wrong = await fixture.add({ content: 'parrot is mute' });
    const faded = await fixture.add({ content: 'parrot was cheap' });
    await tenant.contradictMemories({ a: wrong.id, b: right.id, winner: right.id });
    await tenant.patchMemory(faded.id, { status: 'archived' });
    expect(textsOf(await ask(fixture, 'parrot', { valid: day(9) }))).toEqual(['parrot speaks']);
    expect(await ask(fixture, 'parrot', { valid: day(9) }, { deepRecall: true })).toHaveLength(3);
  });
});

describe('looking back along what was recorded', () => {
  test('knows nothing of what was stored later, whenever it happened', async () => {
    await using fixture = await openTestEngine();
    fixture.clock.set(day(10));
    await fixture.add({ content: 'invoice of the first week', eventTime: day(1) });
    const at = async (asOf: AsOf) => textsOf(await ask(fixture, 'invoice', asOf));
    expect(await at({ recorded: day(10) - 1 })).toEqual([]);
    expect(await at({ recorded: day(10) })).toEqual(['invoice of the first week']);
    expect(await at({ valid: day(2) })).toEqual(['invoice of the first week']);
    expect(await at({ valid: day(2), recorded: day(5) })).toEqual([]);
  });

  test('has what was superseded, closed or decided since as it stood', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const old = await fixture.add({ content: 'Ann lives in Lisbon', eventTime: day(0) });
    const rival = await fixture.add({ content: 'Ann lives in Madrid', eventTime: day(0), confidence: 0.4 });
    clock.set(day(30));
    // Told on day 30 that she moved on day 10.
    const newer = await fixture.add({ content: 'Ann lives in Porto', eventTime: day(10) });
    await tenant.supersedeMemory({ oldId: old.id, newId: newer.id });
    clock.set(day(40));
    await tenant.contradictMemories({ a: rival.id, b: newer.id, winner: newer.id });
    clock.set(day(50));
    const at = (asOf: AsOf) => ask(fixture, 'where does Ann live', asOf, { rerank: 'none' });
    const then = await at({ recorded: day(20) });
    expect(textsOf(then)).toEqual(['Ann lives in Lisbon', 'Ann lives in Madrid']);
    expect(then.map(({ memory }) => [memory.status, memory.validTo])).toEqual([
      ['active', null],
      ['active', null],
    ]);
    expect(then.flatMap(({ explain }) => explain!.adjustments)).toEqual([]);
    // The move was known from the moment it was told, and so was what had been true before it.
    expect(textsOf(await at({ recorded: day(30) }))).toEqual(['Ann lives in Madrid', 'Ann lives in Porto']);
    expect(textsOf(await at({ recorded: day(30), valid: day(5) }))).toEqual([
      'Ann lives in Lisbon',
      'Ann lives in Madrid',
    ]);
    expect(textsOf(await at({ recorded: day(40) }))).toEqual(['Ann lives in Porto']);
    expect(textsOf(await at({ recorded: day(20), valid: day(15) }))).toEqual([
      'Ann lives in Lisbon',
      'Ann lives in Madrid',
    ]);
  });

  test('weakens nobody for a contradiction that was stated later', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const tea = await fixture.add({ content: 'Ben drinks tea' });
    const coffee = await fixture.add({ content: 'Ben drinks coffee' });
    clock.set(day(5));
    await tenant.contradictMemories({ a: tea.id, b: coffee.id });
    const weakened = async (asOf: AsOf | undefined) =>
      (await ask(fixture, 'what does Ben drink', asOf, { rerank: 'none' })).flatMap(
        ({ explain }) => explain!.adjustments,
      );
    expect(await weakened({ recorded: day(4) })).toEqual([]);
    expect(await weakened({ recorded: day(5) })).toHaveLength(1);
    expect(await weakened(undefined)).toHaveLength(1);
  });

  test('answers as a query of that time would have, also about what ended since', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const { id } = await fixture.add({ content: 'The office is open', eventTime: day(90), validTo: day(20) });
    const found = async () => textsOf(await ask(fixture, 'office', undefined));
    const live = await found();
    clock.set(day(10));
    expect(await found()).toEqual(live);
    await tenant.patchMemory(id, { validTo: day(8) });
    expect(await found()).toEqual([]);
    expect(textsOf(await ask(fixture, 'office', { recorded: day(9) }))).toEqual(live);
    expect(textsOf(await ask(fixture, 'office', { recorded: day(10) }))).toEqual([]);
  });

  test('knows what has been archived since, and what was archived then', async () => {
    await using fixture = await openTestEngine({ settings: { OM_ARCHIVE_BELOW: '0.2' } });
    const { tenant, clock } = fixture;
    const { id } = await fixture.add({ content: 'The spare key is under the pot', importance: 0.3 });
    await fixture.drain();
    clock.set(day(400));
    await decayMemories(fixture.maintenance);
    expect(await tenant.getMemory(id)).toMatchObject({ status: 'archived', version: 2, updatedAt: day(400) });
    expect(await tenant.listRevisions(id)).toEqual([
      { version: 1, replacedAt: day(400), writtenBy: null, replaced: { status: 'active' } },
    ]);
    clock.set(day(410));
    await tenant.addMemories([newMemory({ content: 'The spare key is under the pot', importance: 0.3 })]);
    expect(await tenant.getMemory(id)).toMatchObject({ status: 'active', version: 3 });
    const at = async (time: number) => (await ask(fixture, 'spare key', { recorded: time })).length;
    expect([await at(day(399)), await at(day(400)), await at(day(409)), await at(day(410))]).toEqual([1, 0, 0, 1]);
  });

  test('filters by what was recorded then', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const was = { tags: ['ops', 'night'], type: 'runbook', metadata: { team: 'red', level: 3 }, eventTime: day(-10) };
    const { id } = await fixture.add({ content: 'Restart the relay', ...was });
    clock.set(day(10));
    await tenant.patchMemory(id, { tags: ['dev'], metadata: { team: 'blue', level: null }, eventTime: day(-1) });
    clock.set(day(20));
    await tenant.patchMemory(id, { type: 'note', title: 'Relay' });
    const finds = async (recorded: number | undefined, filter: MemoryQuery['filter']) =>
      (await ask(fixture, 'relay', recorded === undefined ? undefined : { recorded }, { filter })).length === 1;
    const then: MemoryQuery['filter'][] = [
      { tags: ['night', 'ops'] },
      { types: ['runbook'] },
      { metadata: { team: 'red' } },
      { metadata: { level: { $gte: 3, $lt: 4 }, team: { $ne: 'blue' } } },
      { eventFrom: day(-10), eventTo: day(-9) },
    ];
    const now: MemoryQuery['filter'][] = [
      { tags: ['dev'] },
      { types: ['note'] },
      { metadata: { team: 'blue', level: null } },
      { metadata: { level: { $exists: false } } },
      { eventFrom: day(-1) },
    ];
    for (const filter of then) {
      expect([await finds(day(5), filter), await finds(undefined, filter)], JSON.stringify(filter)).toEqual([
        true,
        false,
      ]);
    }
    for (const filter of now) {
      expect([await finds(day(5), filter), await finds(day(20), filter)], JSON.stringify(filter)).toEqual([
        false,
        true,
      ]);
    }
    // Between the two changes, each field as it was.
    expect(await finds(day(15), { types: ['runbook'], tags: ['dev'], metadata: { team: 'blue' } })).toBe(true);
    await expect(finds(day(5), { sectors: ['semantic'] })).rejects.toThrow(/filters.sectors and as_of.recorded/);
  });

  test('holds also where the clock was set back between two changes', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const { id } = await fixture.add({ content: 'The pin is 1', validFrom: day(-1) });
    clock.set(day(10));
    await tenant.patchMemory(id, { content: 'The pin is 2' });
    clock.set(day(5));
    await tenant.patchMemory(id, { content: 'The pin is 3' });
    expect((await tenant.getMemory(id)).updatedAt).toBe(day(10));
    expect((await tenant.listRevisions(id)).map(({ replacedAt }) => replacedAt)).toEqual([day(10), day(10)]);
    expect(textsOf(await ask(fixture, 'pin', { recorded: day(7) }))).toEqual(['The pin is 1']);
    expect(textsOf(await ask(fixture, 'pin', { recorded: day(10) }))).toEqual(['The pin is 3']);
  });

  test('reads of many revisions only those that tell what stood then', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const { id } = await fixture.add({ content: 'log 0', title: 'Log', tags: ['first'] });
    for (let version = 1; version <= 40; version += 1) {
      clock.set(day(version));
      await tenant.patchMemory(id, version === 7 ? { tags: ['seventh'] } : { content: `log ${version}` });
    }
    // None of these is needed, and a look back that parsed them would fail on them.
    fixture.store.write(() =>
      fixture.store.db.exec(`UPDATE memory_revisions SET snapshot = '{' WHERE version NOT IN (4, 7)`),
    );
    expect(await only(fixture, 'log', { recorded: day(3) })).toMatchObject({
      content: 'log 3',
      tags: ['first'],
      status: 'active',
      version: 4,
      updatedAt: day(3),
    });
    await tenant.patchMemory(id, { status: 'archived' });
    expect(await ask(fixture, 'log', { recorded: day(40) })).toEqual([]);
  });
});

describe('what is shown of a memory', () => {
  test('is what it said then: before, between and after two changes of its text', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const { id } = await fixture.add({
      content: 'The code is 1111',
      title: 'Door',
      tags: ['door'],
      metadata: { floor: 1 },
      entities: ['Door code'],
      eventTime: day(-5),
    });
    clock.set(day(10));
    await tenant.patchMemory(id, { content: 'The code is 2222', tags: ['door', 'changed'], gist: 'Twos' });
    clock.set(day(20));
    await tenant.patchMemory(id, {
      content: 'The code is 3333',
      title: 'Gate',
      metadata: { floor: null, gate: 'east' },
    });
    clock.set(day(30));

    const [first, second, third] = [
      {
        content: 'The code is 1111',
        title: 'Door',
        tags: ['door'],
        metadata: { floor: 1 },
        entities: ['Door code'],
        version: 1,
        updatedAt: day(0),
      },
      {
        content: 'The code is 2222',
        title: 'Door',
        tags: ['door', 'changed'],
        metadata: { floor: 1 },
        gist: 'Twos',
        version: 2,
        updatedAt: day(10),
      },
      {
        content: 'The code is 3333',
        title: 'Gate',
        tags: ['door', 'changed'],
        metadata: { gate: 'east' },
        version: 3,
        updatedAt: day(20),
      },
    ];
    const shown: [AsOf, object][] = [
      // What was corrected since was no more true then: only a time of recording brings an old text back.
      [{ valid: day(-5) }, third],
      [{ valid: day(20) - 1 }, third],
      [{ valid: day(20) }, third],
      [{ recorded: day(0) }, first],
      [{ recorded: day(10) - 1 }, first],
      [{ recorded: day(10) }, second],
      [{ recorded: day(20) - 1 }, second],
      [{ recorded: day(20) }, third],
      [{ recorded: day(99) }, third],
      // What was known at one moment about another: the text of the knowing.
      [{ valid: day(25), recorded: day(15) }, second],
    ];
    for (const [asOf, expected] of shown) {
      expect(await only(fixture, 'code', asOf), JSON.stringify(asOf)).toMatchObject({ id, ...expected });
    }
    // Stated gists go with their text, so the first shows the one that is read off it.
    expect(shownGist(await only(fixture, 'code', { recorded: day(5) }))).toContain('1111');
    expect(await tenant.getMemory(id)).toMatchObject(third);
  });

  test('is found by the words of today', async () => {
    await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
    const { id } = await fixture.add({ content: 'a canary in the kitchen' });
    fixture.clock.set(day(10));
    await fixture.tenant.patchMemory(id, { content: 'a parrot in the kitchen' });
    const old = { recorded: day(5) };
    expect(textsOf(await ask(fixture, 'parrot', old))).toEqual(['a canary in the kitchen']);
    expect(await ask(fixture, 'canary', old)).toEqual([]);
  });

  test('is counted against the token budget as it was then', async () => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add({ content: 'note' });
    fixture.clock.set(day(10));
    await fixture.tenant.patchMemory(id, { content: `note ${'and much more of it '.repeat(50)}` });
    expect(await ask(fixture, 'note', undefined, { tokenBudget: 20 })).toEqual([]);
    expect(textsOf(await ask(fixture, 'note', { recorded: day(5) }, { tokenBudget: 20 }))).toEqual(['note']);
  });
});

test('a look back leaves the tenant’s filter and other tenants alone', async () => {
  await using fixture = await openTestEngine();
  fixture.engine.control.createTenant('other');
  await fixture.add({ content: 'shared word', userId: 'ann' });
  await fixture.add({ content: 'shared word', userId: 'bob' });
  const asOf = { valid: day(1), recorded: day(1) };
  const hits = await ask(fixture, 'shared', asOf, { filter: { userIds: ['ann'] } });
  expect(hits.map(({ memory }) => memory.userId)).toEqual(['ann']);
  const other = await fixture.engine.tenant('other');
  expect((await other.query({ query: 'shared', k: 10, filter: {}, asOf })).hits).toEqual([]);
});
