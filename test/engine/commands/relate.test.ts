import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import { isEngineError, type ErrorCode } from '../../../src/engine/errors.ts';
import { expireMemories } from '../../../src/engine/upkeep/expire-memories.ts';
import { listChainEnds } from '../../../src/engine/store/chains.ts';
import type { EdgeType, Link } from '../../../src/engine/types.ts';
import { dumpTables, expectNoOrphans, openTestEngine, START, type TestEngine } from '../../support/engine-fixture.ts';

const refused = (code: ErrorCode, message: RegExp) =>
  expect.toSatisfy((error) => isEngineError(error, code) && message.test(error.message)) as unknown;

/** Adds memories an hour apart. @returns their ids */
async function addAll(fixture: TestEngine, contents: readonly string[], userId = 'ann'): Promise<string[]> {
  const ids: string[] = [];
  for (const content of contents) {
    ids.push((await fixture.add({ content, userId })).id);
    fixture.clock.advance(3_600_000);
  }
  return ids;
}

const statusOf = async ({ tenant }: TestEngine, id: string) => (await tenant.getMemory(id)).status;
const essence = (links: readonly Link[]) => links.map(({ id, type, direction }) => ({ id, type, direction }));

describe('a stated link', () => {
  test('is listed from both ends, heaviest first, with the default weight of its type', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const [turn, plan] = (await addAll(fixture, ['The turn', 'The plan'])) as [string, string];
    const mention = await tenant.linkMemories({ src: turn, dst: plan, type: 'mentions' });
    expect(mention).toMatchObject({ id: plan, direction: 'out', weight: 0.5, automatic: false, similarity: null });
    await tenant.linkMemories({ src: plan, dst: turn, type: 'supports', weight: 1 });
    await tenant.linkMemories({ src: turn, dst: plan, type: 'same_as' });
    expect((await tenant.listLinks(turn)).map(({ type, direction, weight }) => [type, direction, weight])).toEqual([
      ['supports', 'in', 1],
      ['mentions', 'out', 0.5],
      ['same_as', 'out', 0.3],
    ]);
  });

  test('takes another weight when it is stated again, and keeps it when no weight is named', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const [src, dst] = (await addAll(fixture, ['one', 'two'])) as [string, string];
    const link = { src, dst, type: 'depends_on' } as const;
    const first = await tenant.linkMemories({ ...link, weight: 0.9 });
    clock.advance(1_000);
    expect(await tenant.linkMemories(link)).toMatchObject({ weight: 0.9, createdAt: first.createdAt });
    expect(await tenant.linkMemories({ ...link, weight: 0 })).toMatchObject({ weight: 0, updatedAt: clock.now() });
    expect(await tenant.listLinks(src)).toHaveLength(1);
  });

  test('makes a waypoint that Cairn drew its own, and stands beside the one that leads elsewhere', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const texts = [
      'The kitten Biscuit sleeps on the sofa',
      'The kitten Biscuit sleeps on a sofa',
      'Taxes are due in May',
    ];
    const [older, newer, other] = (await addAll(fixture, texts)) as [string, string, string];
    await fixture.drain();
    expect(await tenant.listLinks(newer)).toMatchObject([{ id: older, type: 'waypoint', automatic: true }]);
    await tenant.linkMemories({ src: newer, dst: other, type: 'waypoint', weight: 0.1 });
    expect((await tenant.listLinks(newer)).map(({ automatic }) => automatic)).toEqual([true, false]);
    const { similarity } = (await tenant.listLinks(newer))[0]!;
    await tenant.linkMemories({ src: newer, dst: older, type: 'waypoint', weight: 0.7 });
    expect((await tenant.listLinks(newer))[0]).toMatchObject({ id: older, automatic: false, weight: 0.7, similarity });
    await tenant.unlinkMemories({ src: newer, dst: older, type: 'waypoint' });
    expect((await tenant.listLinks(newer)).map(({ id }) => id)).toEqual([other]);
  });

  test('is refused for what means nothing', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const [one, two] = (await addAll(fixture, ['one', 'two'])) as [string, string];
    const expiring = await fixture.add({ content: 'soon gone', expiresAt: clock.now() + 1 });
    clock.advance(1);
    const link = (src: string, dst: string, type: EdgeType) => tenant.linkMemories({ src, dst, type });
    await expect(link(one, one, 'supports')).rejects.toEqual(refused('invalid', /^dst: .* itself$/));
    await expect(link(one, two, 'supersedes')).rejects.toEqual(
      refused('invalid', /^type: supersedes .* use supersede/),
    );
    await expect(link(one, two, 'contradicts')).rejects.toEqual(refused('invalid', /^type: .* use contradict/));
    await expect(link('unknown', two, 'supports')).rejects.toEqual(refused('not_found', /^src: /));
    await expect(link(one, expiring.id, 'supports')).rejects.toEqual(refused('not_found', /^dst: /));
    const unlink = tenant.unlinkMemories({ src: one, dst: two, type: 'supports' });
    await expect(unlink).rejects.toEqual(refused('not_found', /^no link of type supports from src to dst$/));
    expect(fixture.all('SELECT * FROM edges')).toEqual([]);
  });
});

describe('a supersession', () => {
  test('ends the validity of the old where the new one begins, and keeps what it replaced', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const [paris, berlin] = (await addAll(fixture, ['Ann lives in Paris', 'Ann lives in Berlin'])) as [string, string];
    const newer = await tenant.getMemory(berlin);
    const old = await tenant.supersedeMemory({ oldId: paris, newId: berlin });
    expect(old).toMatchObject({ id: paris, status: 'superseded', validTo: newer.eventTime, version: 2 });
    expect(await tenant.getMemory(paris)).toEqual(old);
    expect(await tenant.getMemory(berlin)).toEqual(newer);
    expect(await tenant.listRevisions(paris)).toEqual([
      { version: 1, replacedAt: clock.now(), writtenBy: null, replaced: { status: 'active', validTo: null } },
    ]);
    expect(essence(await tenant.listLinks(berlin))).toEqual([{ id: paris, type: 'supersedes', direction: 'out' }]);
    await expect(tenant.patchMemory(paris, { status: 'active' })).rejects.toEqual(
      refused('conflict', /superseded memory cannot become active/),
    );
  });

  test.each<[string, { from?: number; to?: number; newFrom?: number; newEvent?: number }, number | null]>([
    ['its successor’s stated start goes before when that happened', { newFrom: 5, newEvent: 9 }, 5],
    ['an end that comes sooner stays', { to: 3, newEvent: 9 }, 3],
    ['an end that comes later gives way', { to: 20, newEvent: 9 }, 9],
    ['an end before its own start is not set', { from: 7, newEvent: 7 }, null],
  ])('%s', async (_, { from, to, newFrom, newEvent }, expected) => {
    await using fixture = await openTestEngine();
    const at = (day: number | undefined) => (day === undefined ? null : START + day * DAY_MS);
    const old = await fixture.add({ content: 'old', eventTime: START, validFrom: at(from), validTo: at(to) });
    const next = await fixture.add({ content: 'new', eventTime: at(newEvent), validFrom: at(newFrom) });
    const superseded = await fixture.tenant.supersedeMemory({ oldId: old.id, newId: next.id });
    expect(superseded.validTo).toBe(at(expected ?? undefined));
  });

  test('said twice is said once', async () => {
    await using fixture = await openTestEngine();
    const [oldId, newId] = (await addAll(fixture, ['old', 'new'])) as [string, string];
    const first = await fixture.tenant.supersedeMemory({ oldId, newId });
    fixture.clock.advance(1_000);
    const before = dumpTables(fixture.store);
    const second = await fixture.tenant.supersedeMemory({ oldId, newId });
    expect(second).toMatchObject({ version: first.version, validTo: first.validTo, updatedAt: first.updatedAt });
    expect(dumpTables(fixture.store)).toEqual(before);
  });

  test('is refused where it would fork a chain or close a circle', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const [a, b, c, d] = (await addAll(fixture, ['a', 'b', 'c', 'd'])) as [string, string, string, string];
    const supersede = (oldId: string, newId: string) => tenant.supersedeMemory({ oldId, newId });
    await supersede(a, b);
    await supersede(b, c);
    const before = dumpTables(fixture.store);
    await expect(supersede(a, a)).rejects.toEqual(refused('invalid', /itself/));
    await expect(supersede(c, a)).rejects.toEqual(refused('conflict', /circle/));
    await expect(supersede(b, a)).rejects.toEqual(refused('conflict', /already superseded/));
    await expect(supersede(a, d)).rejects.toEqual(refused('conflict', new RegExp(`already superseded by ${b}`)));
    await expect(supersede('unknown', d)).rejects.toEqual(refused('not_found', /^old_id: /));
    await expect(supersede(d, 'unknown')).rejects.toEqual(refused('not_found', /^new_id: /));
    const [stranger] = await addAll(fixture, ['e'], 'bob');
    await expect(supersede(c, stranger!)).rejects.toEqual(refused('invalid', /different users/));
    expect({ ...dumpTables(fixture.store), edges: [] }).toMatchObject({ memory_revisions: before['memory_revisions'] });
    expect(dumpTables(fixture.store)['edges']).toEqual(before['edges']);
  });

  test('no order of supersessions makes a circle or gives a memory two successors', async () => {
    const pairs = fc.array(fc.tuple(fc.nat(5), fc.nat(5)), { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(pairs, async (wanted) => {
        await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
        const ids = await addAll(fixture, ['0', '1', '2', '3', '4', '5']);
        const successor = new Map<number, number>();
        for (const [old, next] of wanted) {
          await fixture.tenant.supersedeMemory({ oldId: ids[old]!, newId: ids[next]! }).then(
            () => successor.set(old, next),
            () => {},
          );
        }
        for (const start of ids.keys()) {
          let [at, hops]: [number | undefined, number] = [start, 0];
          while (at !== undefined && hops <= ids.length) [at, hops] = [successor.get(at), hops + 1];
          expect(hops).toBeLessThanOrEqual(ids.length);
          expect(await statusOf(fixture, ids[start]!)).toBe(successor.has(start) ? 'superseded' : 'active');
        }
        expect(fixture.get('SELECT count(*) FROM edges')).toBe(successor.size);
      }),
      { numRuns: 15 },
    );
  });

  test('taken back gives the old memory its status and its validity again', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const [oldId, newId] = (await addAll(fixture, ['old', 'new'])) as [string, string];
    await tenant.patchMemory(oldId, { status: 'archived' });
    await tenant.supersedeMemory({ oldId, newId });
    await tenant.patchMemory(oldId, { title: 'read more closely' });
    await tenant.unlinkMemories({ src: newId, dst: oldId, type: 'supersedes' });
    // It was archived before, and a title says nothing about validity.
    expect(await tenant.getMemory(oldId)).toMatchObject({ status: 'archived', validTo: null, version: 5 });
    expect(await tenant.listLinks(oldId)).toEqual([]);
    await tenant.supersedeMemory({ oldId, newId });
    expect(await statusOf(fixture, oldId)).toBe('superseded');
  });

  test('taken back leaves an end that someone stated since', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const [oldId, newId] = (await addAll(fixture, ['old', 'new'])) as [string, string];
    await tenant.supersedeMemory({ oldId, newId });
    await tenant.patchMemory(oldId, { validTo: START + 1 });
    await tenant.unlinkMemories({ src: newId, dst: oldId, type: 'supersedes' });
    expect(await tenant.getMemory(oldId)).toMatchObject({ status: 'active', validTo: START + 1 });
  });

  test('ends when the newer memory is deleted: the older one lives again', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const [oldId, newId] = (await addAll(fixture, ['old', 'new'])) as [string, string];
    await tenant.supersedeMemory({ oldId, newId });
    const receipt = await tenant.deleteMemory(newId);
    expect(receipt).toMatchObject({ memories: 1, edges: 1, revisions: 0 });
    expect(await tenant.getMemory(oldId)).toMatchObject({ status: 'active', validTo: null, version: 3 });
    expectNoOrphans(fixture.store);
  });

  test('ends when the newer memory expires, and from then on another may supersede', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const [oldId, laterId] = (await addAll(fixture, ['home', 'new home'])) as [string, string];
    const hotel = await fixture.add({ content: 'hotel', userId: 'ann', expiresAt: clock.now() + DAY_MS });
    await tenant.supersedeMemory({ oldId, newId: hotel.id });
    clock.advance(DAY_MS);
    // Not erased yet, but gone for every reader: it must not stand in the way.
    await tenant.supersedeMemory({ oldId, newId: laterId });
    expect(await tenant.getMemory(oldId)).toMatchObject({
      status: 'superseded',
      validTo: (await tenant.getMemory(laterId)).eventTime,
    });
    await tenant.unlinkMemories({ src: laterId, dst: oldId, type: 'supersedes' });
    expect(await tenant.getMemory(oldId)).toMatchObject({ status: 'active', validTo: null });

    const motel = await fixture.add({ content: 'motel', userId: 'ann', expiresAt: clock.now() + DAY_MS });
    await tenant.supersedeMemory({ oldId, newId: motel.id });
    clock.advance(DAY_MS);
    await expireMemories(fixture.maintenance);
    expect(await tenant.getMemory(oldId)).toMatchObject({ status: 'active', validTo: null });
  });

  test('outlives the middle of its chain: what superseded that one takes its place', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const [a, b, c] = (await addAll(fixture, ['a', 'b', 'c'])) as [string, string, string];
    await tenant.supersedeMemory({ oldId: a, newId: b });
    await tenant.supersedeMemory({ oldId: b, newId: c });
    await tenant.deleteMemory(b);
    // Else the first text of three would stand beside the last.
    expect(await statusOf(fixture, a)).toBe('superseded');
    expect(essence(await tenant.listLinks(a))).toEqual([{ id: c, type: 'supersedes', direction: 'in' }]);
    await tenant.deleteMemory(c);
    expect(await tenant.getMemory(a)).toMatchObject({ status: 'active', validTo: null });
  });

  test('several of a chain erased at once leave what remains right, and count what was there', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const first = await fixture.add({ content: 'a' });
    const gone = [
      await fixture.add({ content: 'b', sessionId: 'gone' }),
      await fixture.add({ content: 'c', sessionId: 'gone' }),
    ];
    const last = await fixture.add({ content: 'd' });
    const chain = [first, ...gone, last].map(({ id }) => id);
    for (const [place, oldId] of chain.slice(0, -1).entries()) {
      await tenant.supersedeMemory({ oldId, newId: chain[place + 1]! });
    }
    expect(await tenant.deleteMemories({ sessionIds: ['gone'] })).toMatchObject({
      memories: 2,
      edges: 3,
      revisions: 2,
    });
    expect(essence(await tenant.listLinks(first.id))).toEqual([{ id: last.id, type: 'supersedes', direction: 'in' }]);
    expect(await statusOf(fixture, first.id)).toBe('superseded');
    expectNoOrphans(fixture.store);
  });
});

describe('the end that a supersession gives', () => {
  const chainOfThree = async (fixture: TestEngine) => {
    const ids = (await addAll(fixture, ['a', 'b', 'c'])) as [string, string, string];
    const [a, b, c] = ids;
    await fixture.tenant.supersedeMemory({ oldId: a, newId: b });
    await fixture.tenant.supersedeMemory({ oldId: b, newId: c });
    return ids;
  };

  test('moves to where the successor begins when the middle of the chain is erased', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const [a, b, c] = await chainOfThree(fixture);
    const [atB, atC] = [(await tenant.getMemory(b)).eventTime, (await tenant.getMemory(c)).eventTime];
    expect((await tenant.getMemory(a)).validTo).toBe(atB);
    await tenant.deleteMemory(b);
    expect(await tenant.getMemory(a)).toMatchObject({ status: 'superseded', validTo: atC });
    await tenant.unlinkMemories({ src: c, dst: a, type: 'supersedes' });
    expect(await tenant.getMemory(a)).toMatchObject({ status: 'active', validTo: null });
    expect((await tenant.listRevisions(a))[0]!.replaced).toEqual({ status: 'superseded', validTo: atC });
  });

  test('follows the start of the successor, and is taken back with it', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const [oldId, newId] = (await addAll(fixture, ['old', 'new'])) as [string, string];
    await tenant.supersedeMemory({ oldId, newId });
    for (const start of [clock.now() + DAY_MS, clock.now() - DAY_MS, clock.now() + 9 * DAY_MS]) {
      await tenant.patchMemory(newId, { validFrom: start });
      expect(await tenant.getMemory(oldId)).toMatchObject({ status: 'superseded', validTo: start });
    }
    const before = await tenant.getMemory(oldId);
    await tenant.patchMemory(newId, { title: 'New' });
    await tenant.patchMemory(newId, { eventTime: START });
    expect(await tenant.getMemory(oldId)).toEqual(before);
    await tenant.unlinkMemories({ src: newId, dst: oldId, type: 'supersedes' });
    expect(await tenant.getMemory(oldId)).toMatchObject({ status: 'active', validTo: null });
  });

  test('leaves an earlier end of the old memory’s own as it is, and comes back to a later one', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const day = (number: number) => START + number * DAY_MS;
    const old = await fixture.add({ content: 'old', validTo: day(5) });
    const next = await fixture.add({ content: 'new', eventTime: day(2) });
    const endAfter = async (eventTime: number) => {
      await tenant.patchMemory(next.id, { eventTime });
      return (await tenant.getMemory(old.id)).validTo;
    };
    expect(await tenant.supersedeMemory({ oldId: old.id, newId: next.id })).toMatchObject({ validTo: day(2) });
    expect([await endAfter(day(9)), await endAfter(day(3))]).toEqual([day(5), day(3)]);
    await tenant.patchMemory(old.id, { validTo: day(1) });
    expect([await endAfter(day(9)), await endAfter(0)]).toEqual([day(1), 0]);
  });
});

test('chains keep their live ends through whatever joins, leaves and is erased', async () => {
  const acts = fc.array(
    fc.record({ act: fc.constantFrom('supersede', 'supersede', 'unlink', 'erase'), old: fc.nat(9), next: fc.nat(9) }),
    { minLength: 5, maxLength: 30 },
  );
  await fc.assert(
    fc.asyncProperty(acts, async (wanted) => {
      await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
      const { tenant } = fixture;
      const ids = await addAll(fixture, [...'abcdefghij']);
      for (const { act, old, next } of wanted) {
        const [oldId, newId] = [ids[old]!, ids[next]!];
        await (
          act === 'erase'
            ? tenant.deleteMemory(newId)
            : act === 'unlink'
              ? tenant.unlinkMemories({ src: newId, dst: oldId, type: 'supersedes' })
              : tenant.supersedeMemory({ oldId, newId })
        ).catch(() => {});
        expectNoOrphans(fixture.store);
      }
      const edges = fixture.all<{ src: number; dst: number }>('SELECT src, dst FROM edges');
      const successor = new Map(edges.map(({ src, dst }) => [dst, src]));
      const endOf = (memoryNo: number): number =>
        successor.has(memoryNo) ? endOf(successor.get(memoryNo)!) : memoryNo;
      const superseded = [...successor.keys()];
      const known = listChainEnds(fixture.store, superseded, fixture.clock.now());
      expect(new Map(known.map(({ memoryNo, liveEnd }) => [memoryNo, liveEnd]))).toEqual(
        new Map(superseded.toSorted((a, b) => a - b).map((memoryNo) => [memoryNo, endOf(memoryNo)])),
      );
    }),
    { numRuns: 40 },
  );
});

describe('a contradiction', () => {
  test('is stored once and found from both sides', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const [a, b] = (await addAll(fixture, ['tea', 'coffee'])) as [string, string];
    const link = await tenant.contradictMemories({ a: b, b: a });
    expect(link).toMatchObject({ id: a, type: 'contradicts', weight: 0.8, automatic: false });
    await tenant.contradictMemories({ a, b });
    expect(fixture.get('SELECT count(*) FROM edges')).toBe(1);
    expect([await tenant.listLinks(a), await tenant.listLinks(b)].map((links) => links.map(({ id }) => id))).toEqual([
      [b],
      [a],
    ]);
    expect([await statusOf(fixture, a), await statusOf(fixture, b)]).toEqual(['active', 'active']);
  });

  test('with a winner marks the other, until it is decided anew or taken back', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const [a, b] = (await addAll(fixture, ['tea', 'coffee'])) as [string, string];
    const statuses = async () => [await statusOf(fixture, a), await statusOf(fixture, b)];
    await tenant.contradictMemories({ a, b, winner: a });
    expect(await statuses()).toEqual(['active', 'contradicted']);
    expect(await tenant.listRevisions(b)).toMatchObject([{ version: 1, replaced: { status: 'active' } }]);
    await tenant.contradictMemories({ a, b });
    expect(await statuses()).toEqual(['active', 'contradicted']);
    await tenant.contradictMemories({ a: b, b: a, winner: b });
    expect(await statuses()).toEqual(['contradicted', 'active']);
    await tenant.unlinkMemories({ src: b, dst: a, type: 'contradicts' });
    expect(await statuses()).toEqual(['active', 'active']);
  });

  test('ends with the deletion of the winner', async () => {
    await using fixture = await openTestEngine();
    const [a, b] = (await addAll(fixture, ['tea', 'coffee'])) as [string, string];
    await fixture.tenant.contradictMemories({ a, b, winner: a });
    await fixture.tenant.deleteMemory(a);
    expect(await statusOf(fixture, b)).toBe('active');
  });

  test('is refused for what means nothing', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const [a, b, c] = (await addAll(fixture, ['tea', 'coffee', 'water'])) as [string, string, string];
    const [stranger] = await addAll(fixture, ['milk'], 'bob');
    const contradict = (one: string, other: string, winner?: string) =>
      tenant.contradictMemories({ a: one, b: other, winner });
    await expect(contradict(a, a)).rejects.toEqual(refused('invalid', /itself/));
    await expect(contradict(a, b, c)).rejects.toEqual(refused('invalid', /^winner: /));
    await expect(contradict(a, 'unknown')).rejects.toEqual(refused('not_found', /^b: /));
    await expect(contradict(a, stranger!)).rejects.toEqual(refused('invalid', /different users/));
  });
});

test('a status follows all links of a memory, in whatever order they come and go', async () => {
  const acts = fc.array(fc.record({ act: fc.constantFrom('supersede', 'lose', 'unlink'), by: fc.nat(2) }), {
    minLength: 1,
    maxLength: 12,
  });
  await fc.assert(
    fc.asyncProperty(acts, fc.boolean(), async (wanted, isArchived) => {
      await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
      const { tenant } = fixture;
      const [subject, ...others] = (await addAll(fixture, ['subject', 'x', 'y', 'z'])) as [string, ...string[]];
      if (isArchived) await tenant.patchMemory(subject, { status: 'archived' });
      let successor: string | undefined;
      const winners = new Set<string>();
      for (const { act, by } of wanted) {
        fixture.clock.advance(1_000);
        const other = others[by]!;
        if (act === 'supersede') {
          const done = await tenant.supersedeMemory({ oldId: subject, newId: other }).then(
            () => true,
            () => false,
          );
          if (done) successor = other;
        } else if (act === 'lose') {
          await tenant.contradictMemories({ a: subject, b: other, winner: other });
          winners.add(other);
        } else {
          const type = successor === other ? 'supersedes' : 'contradicts';
          const unlink = type === 'supersedes' || winners.has(other);
          if (unlink) await tenant.unlinkMemories({ src: other, dst: subject, type });
          if (type === 'supersedes') successor = undefined;
          else winners.delete(other);
        }
        const own = isArchived ? 'archived' : 'active';
        const memory = await tenant.getMemory(subject);
        expect(memory.status).toBe(successor ? 'superseded' : winners.size > 0 ? 'contradicted' : own);
        expect(memory.validTo).toBe(successor ? (await tenant.getMemory(successor)).eventTime : null);
      }
    }),
    { numRuns: 25 },
  );
});

test('links of one tenant are unknown to another', async () => {
  await using fixture = await openTestEngine();
  fixture.engine.control.createTenant('other');
  const [a, b] = (await addAll(fixture, ['a', 'b'])) as [string, string];
  const other = await fixture.engine.tenant('other');
  for (const attempt of [
    other.linkMemories({ src: a, dst: b, type: 'supports' }),
    other.supersedeMemory({ oldId: a, newId: b }),
    other.contradictMemories({ a, b }),
    other.unlinkMemories({ src: a, dst: b, type: 'supports' }),
  ]) {
    await expect(attempt).rejects.toEqual(refused('not_found', /no memory with this id/));
  }
  expect(fixture.all('SELECT * FROM edges')).toEqual([]);
});
