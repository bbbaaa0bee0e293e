import { expect } from 'vitest';
import type { Tenant } from '../../src/engine/engine.ts';
import type { Json, Memory } from '../../src/engine/types.ts';
import { newMemory, START, type TestEngine } from '../support/engine-fixture.ts';
import { jsonLines } from '../support/portable.ts';

const HOUR = 3_600_000;
/** Size of each value that was stored first, in bytes; those that replaced them are small. */
const LONG = 250_000;
/** Greatest size of texts and values of a slice and of a list, in bytes. */
const SLICE = 512 * 1024;
/** A value of few bytes that takes much more memory than them. */
const MANY_PARTS: Json = Array<Json>(30_000).fill(1);
/** Number of items that fit into a slice together. */
const FITTING = 2;

/** Puts items with the keys `k0`, `k1` and so on, which belong to the user `past` or to the named one. */
async function putAll(
  tenant: Tenant,
  count: number,
  value: (place: number) => Json,
  userId: string = 'past',
): Promise<void> {
  for (let place = 0; place < count; place += 1) {
    const memory = newMemory({ content: `the harbour number ${place}`, userId });
    await tenant.putItem({ ...memory, namespace: 'past', key: `k${place}`, value: value(place) });
  }
}

/** Lists memories of a user as of a time. @returns the numbers of memories in each slice, and all of them */
async function slicesOf(tenant: Tenant, userId: string, recorded: number): Promise<[number[], Memory[]]> {
  const { slices, next } = await tenant.pageMemories({ userIds: [userId] }, { limit: 20, asOf: { recorded } });
  const lengths: number[] = [];
  const listed: Memory[] = [];
  for await (const slice of slices) {
    lengths.push(slice.length);
    listed.push(...slice.map(({ memory }) => memory));
  }
  expect(next).toBeNull();
  return [lengths, listed];
}

const sizeOf = ({ content, value }: Memory) => content.length + JSON.stringify(value).length;

/**
 * Checks that what is read of an earlier time is measured by what it was then: items whose values were long, and are
 * short now, are read some at a time.
 */
export async function pastSizes({ tenant, clock }: TestEngine): Promise<void> {
  const count = 6;
  const [stored, replaced] = [START + HOUR, START + 2 * HOUR];
  clock.set(stored);
  await putAll(tenant, count, (place) => `${place}`.repeat(LONG));
  await putAll(tenant, 3, () => MANY_PARTS, 'parts');
  clock.set(replaced);
  await putAll(tenant, count, () => 'short');
  await putAll(tenant, 3, () => 'short', 'parts');

  const [lengths, listed] = await slicesOf(tenant, 'past', stored);
  expect(lengths).toEqual([FITTING, FITTING, FITTING]);
  expect(listed.map(({ value }) => (value as string)[0])).toEqual(['5', '4', '3', '2', '1', '0']);

  const [ofParts] = await slicesOf(tenant, 'parts', stored);
  expect(ofParts).toEqual([1, 1, 1]);

  const diff = async (from: number, to: number) =>
    tenant.diff({ from, to, axis: 'recorded', filter: { userIds: ['past'] }, fadedBelow: 0.1, limit: 20 });
  const whenStored = await diff(START, stored);
  expect([whenStored.added.length, whenStored.counts.added]).toEqual([FITTING, count]);
  expect(whenStored.added.every(({ memory }) => sizeOf(memory) > LONG)).toBe(true);
  const whenReplaced = await diff(stored, replaced);
  expect([whenReplaced.changed.length, whenReplaced.counts.changed]).toEqual([FITTING, count]);
  expect(whenReplaced.changed.map(({ memory, before }) => [memory.value, sizeOf(before) > LONG])).toEqual([
    ['short', true],
    ['short', true],
  ]);
}

/** Checks that the neighbours of hits of an earlier time have at most 4 MiB together, as they were then. */
export async function pastNeighbours({ tenant, clock, drain }: TestEngine): Promise<void> {
  const stored = clock.now();
  const texts = Array.from({ length: 24 }, (_, n) => `the quay number ${n} ${'x'.repeat(LONG)}`);
  const { outcomes } = await tenant.addMemories(
    texts.map((content, n) => newMemory({ content, userId: 'near', sessionId: 'talk', eventTime: START + n })),
  );
  clock.advance(HOUR);
  for (const [n, outcome] of outcomes.entries())
    await tenant.patchMemory((outcome as { id: string }).id, { content: `the quay number ${n}` });
  await drain();
  const asked = { query: 'quay', k: 20, filter: { userIds: ['near'] }, collapseSimilar: false, minScore: 0 };
  const { hits } = await tenant.query({ ...asked, expand: ['neighbours'], asOf: { recorded: stored } });
  const around = hits.flatMap(({ neighbours }) => [...(neighbours?.before ?? []), ...(neighbours?.after ?? [])]);
  expect(around.length).toBeGreaterThan(3);
  expect(around.every(({ content }) => content.length > LONG)).toBe(true);
  expect(around.reduce((sum, { content }) => sum + content.length, 0)).toBeLessThanOrEqual(4 * 1024 * 1024);
}

/** Checks that the hits of a query about an earlier time have at most 6 MiB together, as they were then. */
export async function pastHits({ tenant, clock, drain }: TestEngine): Promise<void> {
  const count = 30;
  const stored = clock.now();
  await putAll(tenant, count, () => 'x'.repeat(LONG));
  clock.advance(HOUR);
  await putAll(tenant, count, () => 'short');
  await drain();
  const asked = { query: 'harbour', k: 40, filter: { userIds: ['past'] }, collapseSimilar: false, minScore: 0 };
  expect((await tenant.query(asked)).hits).toHaveLength(count);
  const { hits } = await tenant.query({ ...asked, asOf: { recorded: stored } });
  const bytes = hits.map(({ memory }) => sizeOf(memory)).reduce((sum, size) => sum + size, 0);
  expect(hits.length).toBeGreaterThan(20);
  expect(bytes).toBeLessThan(6 * 1024 * 1024);
}

/** Checks that an export is read in parts of bounded size, however long earlier values are. */
export async function pastExport({ tenant, clock }: TestEngine): Promise<void> {
  const changes = 8;
  for (let version = 0; version < changes; version += 1) {
    clock.advance(HOUR);
    await putAll(tenant, 2, () => `${version}`.repeat(LONG));
  }
  await putAll(tenant, 6, (place) => `${place}`.repeat(LONG));
  const pieces: string[] = [];
  for await (const piece of tenant.exportLines({})) {
    pieces.push(piece);
    // The export has begun, so it does not have these values.
    if (pieces.length === 1) {
      clock.advance(HOUR);
      await putAll(tenant, 6, () => 'short');
    }
  }
  expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(2 * SLICE + LONG);
  const lines = jsonLines(pieces.join(''));
  const memories = lines.filter(({ type }) => type === 'memory');
  expect(memories.map(({ value }) => [(value as string)[0], (value as string).length])).toEqual(
    Array.from({ length: 6 }, (_, place) => [`${place}`, LONG]),
  );
  const versions = lines.flatMap(({ type, memory, version, replaced }) =>
    type === 'revision' ? [[memory, version, (replaced as { value: string }).value[0]]] : [],
  );
  const [one, other] = memories.map(({ id }) => id);
  const expected = [one, other].flatMap((id) =>
    Array.from({ length: changes }, (_, version) => [id, version + 1, `${version}`]),
  );
  expect(versions).toEqual(expected);
  expect(lines.at(-1)).toMatchObject({ type: 'end', counts: { memory: 6, revision: versions.length } });
}
