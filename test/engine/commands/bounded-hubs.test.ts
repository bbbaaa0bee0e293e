/** Commands on a memory with any number of links, queries or followers work on a bounded part of them in one commit. */

import { expect, test, vi } from 'vitest';
import { eraseInSlices, eraseMemories, ERASE_SLICE } from '../../../src/engine/commands/erase.ts';
import { importLines } from '../../../src/engine/commands/import-lines.ts';
import { putItem } from '../../../src/engine/commands/items.ts';
import { patchMemory } from '../../../src/engine/commands/patch.ts';
import { eraseStanding } from '../../../src/engine/commands/standing.ts';
import { undoLinks } from '../../../src/engine/commands/undo-writer.ts';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import { hasLostContradiction, listLostContradictions } from '../../../src/engine/store/edges.ts';
import { readReflectionsOn } from '../../../src/engine/store/reflections.ts';
import { MAX_INDEXED_BYTES } from '../../../src/engine/store/word-index/memory-text.ts';
import { readOwnEnd, readOwnStatus } from '../../../src/engine/store/revisions.ts';
import type { PortableLine } from '../../../src/engine/types.ts';
import { readsFirstOfEqualLinks, settlesHubOnce, walksHub } from '../../conformance/hubs.ts';
import { newMemory, openTestEngine, START, type TestEngine } from '../../support/engine-fixture.ts';
import { exportText, portableLines } from '../../support/portable.ts';
import { runCommand } from '../../support/run-command.ts';

const LINKS = 1_500;

/** Adds memories, and links each with the memory `hub`. @param link columns src, dst, type, automatic and winner */
async function addSpokes({ tenant, store }: TestEngine, hub: string, link: string): Promise<void> {
  for (let at = 0; at < LINKS; at += 500)
    await tenant.addMemories(Array.from({ length: 500 }, (_, no) => newMemory({ content: `spoke ${at + no}` })));
  store.write(() =>
    store
      .prepare(
        `INSERT INTO edges (src, dst, type, automatic, winner, weight, created_at, updated_at)
         SELECT ${link}, 0.5, 1, 1 FROM memories s CROSS JOIN memories h ON h.id = ? WHERE s.content LIKE 'spoke %'`,
      )
      .run(hub),
  );
}

const inSession = (content: string, day: number) =>
  newMemory({ content, userId: 'ana', sessionId: 's', eventTime: START + day * DAY_MS });

test('an import begins no further line in a commit once much text has to be indexed for it, and keeps the order', async () => {
  await using source = await openTestEngine();
  for (let no = 0; no < 8; no += 1) await source.add(inSession(`short ${no}`, 2 * no));
  const [first, second] = portableLines(await exportText(source.tenant)).flatMap((line) =>
    line.type === 'memory' ? [line.id] : [],
  );
  await source.tenant.linkMemories({ src: first!, dst: second!, type: 'mentions' });
  const all = portableLines(await exportText(source.tenant));
  const [lines, links] = [all.filter(({ type }) => type === 'memory'), all.filter(({ type }) => type === 'link')];

  await using copy = await openTestEngine();
  for (let no = 0; no < 8; no += 1) await copy.add(inSession(`heron ${no} `.repeat(25_000), 2 * no + 1));
  expect(runCommand(copy, (context) => importLines(context, { lines })).outcomes).toHaveLength(2);
  // The second call waits for the rest of the first one, to which its lines refer.
  const outcomes = await Promise.all([copy.tenant.importLines(lines), copy.tenant.importLines(links)]);
  expect(outcomes[0].map(({ kind }) => kind)).toEqual([...Array(2).fill('known'), ...Array(6).fill('stored')]);
  expect(outcomes[1].map(({ kind }) => kind)).toEqual(links.map(() => 'stored'));
});

test('memories that a link moves to another chain count as text of the commit', async () => {
  await using source = await openTestEngine();
  const size = MAX_INDEXED_BYTES / 2 - 75;
  for (let no = 0; no < 2; no += 1) await source.add({ content: `${no} heron`.padEnd(size, ' heron') });
  await source.add({ content: 'one more' });
  const memories = portableLines(await exportText(source.tenant)).filter(({ type }) => type === 'memory');

  await using copy = await openTestEngine();
  const ids = await Promise.all(['a', 'b', 'c', 'd'].map(async (content) => (await copy.add({ content })).id));
  for (const at of [0, 2]) await copy.tenant.supersedeMemory({ oldId: ids[at]!, newId: ids[at + 1]! });
  const unset = { weight: null, similarity: null, winner: null, created_at: null, updated_at: null, written_by: null };
  const ends = { link_type: 'supersedes', src: ids[2]!, dst: ids[1]! } as const;
  const link: PortableLine = { type: 'link', automatic: false, ...ends, ...unset };
  const lines = [...memories.slice(0, 2), link, memories[2]!];
  expect(runCommand(copy, (context) => importLines(context, { lines })).outcomes).toHaveLength(3);
  const rest = runCommand(copy, (context) => importLines(context, { lines: lines.slice(3) }));
  expect(rest.outcomes).toEqual([{ kind: 'stored' }]);
});

test('the standing queries of users are erased in slices', async () => {
  await using fixture = await openTestEngine();
  const { store, tenant } = fixture;
  store.write(() =>
    store
      .prepare(
        `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
         INSERT INTO standing_queries (id, user_id, query, filter, given, min_score, created_at)
         SELECT 'q' || i, 'ana', 'x', '{}', '{}', NULL, 1 FROM n`,
      )
      .run(),
  );
  const erase = () =>
    runCommand(fixture, (context) => eraseStanding(context, { owner: { userIds: ['ana'] }, limit: 1_000 }));
  expect([erase(), erase()]).toEqual([
    { standingQueries: 1_000, webhooks: 0, isDone: false },
    { standingQueries: 500, webhooks: 0, isDone: true },
  ]);
  await tenant.deleteMemories({ userIds: ['ana'] });
});

test('an item that lost many contradictions is put anew in several commits', async () => {
  await using fixture = await openTestEngine();
  const place = { namespace: 'n', key: 'k', userId: '', value: null };
  const { memory } = await fixture.tenant.putItem({ ...newMemory({ content: 'an item' }), ...place });
  await addSpokes(fixture, memory.id, `h.seq, s.seq, 'contradicts', 0, s.seq`);
  fixture.store.write(() =>
    fixture.store
      .prepare(`UPDATE memory_dynamics SET status = 'contradicted' WHERE seq = ?`)
      .run(fixture.memoryNoOf(memory.id)),
  );
  const item = { ...newMemory({ content: 'an item, again' }), ...place };
  const put = () => runCommand(fixture, (context) => putItem(context, { item, options: { ifVersion: 1 } }));
  expect(put()).toBeUndefined();
  expect(fixture.get('SELECT count(*) FROM edges')).toBe(LINKS - 1_000);
  expect(put()).toMatchObject({ memory: { status: 'active', content: 'an item, again' } });
});

test('a text with many concluded links is changed in several commits', async () => {
  await using fixture = await openTestEngine();
  const { id } = await fixture.add({ content: 'the hub' });
  await addSpokes(fixture, id, `s.seq, h.seq, 'supports', 1, NULL`);
  const patch = () => runCommand(fixture, (context) => patchMemory(context, { id, patch: { content: 'the new hub' } }));
  expect(patch()).toBeUndefined();
  expect(fixture.get(`SELECT count(*) FROM edges WHERE type = 'supports'`)).toBe(LINKS - 1_000);
  expect(patch()).toMatchObject({ memory: { content: 'the new hub' } });
  expect(fixture.get(`SELECT count(*) FROM edges WHERE type = 'supports'`)).toBe(0);
});

test('reflections on a memory are erased before it, a bounded number in a commit', async () => {
  await using fixture = await openTestEngine();
  const { id } = await fixture.add({ content: 'the hub' });
  await addSpokes(fixture, id, `s.seq, h.seq, 'derived_from', 1, NULL`);
  const hub = fixture.memoryNoOf(id);
  const erase = () => runCommand(fixture, (context) => eraseInSlices(context, [hub]));
  const { memoryNos, isCut } = readReflectionsOn(fixture.store, [hub], { broadest: 1_000 });
  expect([memoryNos.length, isCut]).toEqual([1_000, true]);
  const slices = [erase()];
  while (!slices.at(-1)!.isDone) slices.push(erase());
  expect(slices.map(({ receipt }) => receipt.memories)).toEqual([...Array(14).fill(ERASE_SLICE), ERASE_SLICE + 1]);
  expect(fixture.get('SELECT count(*) FROM memories')).toBe(0);
});

test('the links of a key are undone, even those of a memory that has expired and is not erased yet', async () => {
  await using fixture = await openTestEngine();
  const { clock, tenant } = fixture;
  const [one, other] = [
    await fixture.add({ content: 'one', expiresAt: clock.now() + 1_000 }),
    await fixture.add({ content: 'other' }),
  ];
  await tenant.as('leaked').linkMemories({ src: one.id, dst: other.id, type: 'supports' });
  clock.advance(2_000);
  expect(await tenant.deleteMemories({ writtenBy: ['leaked'] })).toMatchObject({ edges: 1 });
  expect(fixture.get('SELECT count(*) FROM edges WHERE automatic = 0')).toBe(0);
});

test('a memory that lost many contradictions is settled once in a commit that removes them', async () => {
  await using fixture = await openTestEngine();
  await settlesHubOnce(fixture, {
    erase: (memoryNos) => runCommand(fixture, (context) => eraseMemories(context, memoryNos)),
    undo: (writtenBy) => runCommand(fixture, (context) => undoLinks(context, { writtenBy, limit: 100 })),
  });
});

test('the contradictions that a memory lost are found among any number by an index', async () => {
  await using fixture = await openTestEngine();
  using prepare = vi.spyOn(fixture.store, 'prepare');
  hasLostContradiction(fixture.store, 1);
  listLostContradictions(fixture.store, 1, 10);
  const asked = prepare.mock.calls.map(([sql]) => sql);
  expect(asked).toHaveLength(2);
  for (const sql of asked) {
    const values = Array<number>(sql.split('?').length - 1).fill(1);
    const plan = fixture.store.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values);
    expect(plan).toMatchObject([{ detail: expect.stringMatching(/USING INDEX edges_lost/) }]);
  }
});

test('what a memory was before it was superseded is found among any number of its revisions by an index', async () => {
  await using fixture = await openTestEngine();
  const { tenant, store } = fixture;
  const old = await fixture.add({ content: 'The office opens at eight.', validTo: START + 9 * DAY_MS });
  const newer = await fixture.add({ content: 'The office opens at nine.', validFrom: START + 5 * DAY_MS });
  await tenant.patchMemory(old.id, { status: 'archived' });
  await tenant.supersedeMemory({ oldId: old.id, newId: newer.id });
  for (let no = 0; no < 80; no += 1) await tenant.patchMemory(old.id, { metadata: { no } });
  await tenant.patchMemory(newer.id, { validFrom: START + 3 * DAY_MS });
  expect(await tenant.getMemory(old.id)).toMatchObject({ status: 'superseded', validTo: START + 3 * DAY_MS });
  await tenant.patchMemory(newer.id, { validFrom: START + 20 * DAY_MS });
  expect(await tenant.getMemory(old.id)).toMatchObject({ status: 'superseded', validTo: START + 9 * DAY_MS });
  // An end that a caller has set since is the memory's own.
  await tenant.patchMemory(old.id, { validTo: START + 7 * DAY_MS });
  await tenant.patchMemory(newer.id, { validFrom: START + 2 * DAY_MS });
  await tenant.patchMemory(newer.id, { validFrom: START + 30 * DAY_MS });
  expect(await tenant.getMemory(old.id)).toMatchObject({ status: 'superseded', validTo: START + 7 * DAY_MS });

  using prepare = vi.spyOn(store, 'prepare');
  readOwnStatus(store, 1);
  readOwnEnd(store, 1);
  const asked = prepare.mock.calls.map(([sql]) => sql);
  expect(asked).toHaveLength(2);
  for (const sql of asked) {
    const plan = store.prepare(`EXPLAIN QUERY PLAN ${sql}`).all({ memory: 1, below: 80 }) as {
      readonly detail: string;
    }[];
    const reads = plan.map(({ detail }) => detail).filter((detail) => detail.includes('memory_revisions'));
    expect(reads.length).toBeGreaterThanOrEqual(2);
    for (const read of reads)
      expect(read).toMatch(
        /\(memory=\? AND version=\?\)|revisions_(status \(memory=\? AND status=\? AND |ends \(memory=\? AND )version<\?\)/,
      );
  }
});

test('a chain with a memory that superseded many others is walked as any other', async () => {
  await using fixture = await openTestEngine();
  await walksHub(fixture);
});

test('the first links of equal weight are read in one order, whatever the order in which they were made', async () => {
  await using fixture = await openTestEngine();
  await readsFirstOfEqualLinks(fixture);
});
