import { expect, test } from 'vitest';
import { withFewRevisions } from '../../../src/engine/store/export-rows.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';
import { jsonLines } from '../../support/portable.ts';

/** More than one part of an export may have, by their number and not by their size. */
const CHANGES = 5_000;

test('many small changes of a memory are exported in parts, in their order, each once', async () => {
  await using fixture = await openTestEngine();
  const { tenant, store, clock } = fixture;
  const [plain, changed, last] = [
    await fixture.add({ content: 'never changed' }),
    await fixture.add({ content: 'often changed' }),
    await fixture.add({ content: 'changed once' }),
  ];
  const insert = (memoryNo: number, count: number) =>
    store
      .prepare(
        `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
         INSERT INTO memory_revisions (memory, version, replaced_at, fields, by_link, status, event_time, snapshot)
         SELECT ?, n, ?, 'title', 0, 'active', 0, '{"title":"' || n || '"}' FROM numbers`,
      )
      .run(count, memoryNo, clock.now());
  store.write(() => {
    insert(changed.memoryNo, CHANGES);
    insert(last.memoryNo, 1);
    store.prepare('UPDATE memories SET version = ? WHERE seq = ?').run(CHANGES + 1, changed.memoryNo);
  });
  const pieces: string[] = [];
  for await (const piece of tenant.exportLines({})) pieces.push(piece);
  expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(1024 * 1024);

  const lines = jsonLines(pieces.join('')).filter(({ type }) => type === 'memory' || type === 'revision');
  const told = lines.map(({ type, id, memory, version }) => (type === 'memory' ? id : [memory, version]));
  const changes = Array.from({ length: CHANGES }, (_, no) => [changed.id, no + 1]);
  expect(told).toEqual([plain.id, changed.id, ...changes, last.id, [last.id, 1]]);
});

test('no more memories are taken into a part than have 2,000 changes together, but at least one', async () => {
  await using fixture = await openTestEngine();
  const { store } = fixture;
  const memoryNos: number[] = [];
  for (const version of [1, 501, 1_501, 2, 5_000]) {
    const { memoryNo } = await fixture.add({ content: `in version ${version}` });
    store.write(() => store.prepare('UPDATE memories SET version = ? WHERE seq = ?').run(version, memoryNo));
    memoryNos.push(memoryNo);
  }
  const takenFrom = (place: number) => withFewRevisions(store, memoryNos.slice(place), 2_000).length;
  expect([0, 1, 2, 3, 4].map(takenFrom)).toEqual([3, 2, 2, 1, 1]);
});
