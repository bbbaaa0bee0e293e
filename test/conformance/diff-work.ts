import { expect } from 'vitest';
import { readDiff } from '../../src/engine/store/diff.ts';
import { putStatedEdge } from '../../src/engine/store/edges.ts';
import { createWorkBudget, ROW_BYTES, runWithin } from '../../src/engine/store/work-budget.ts';
import type { MemoryFilter } from '../../src/engine/types.ts';
import { newMemory, START, type TestEngine } from '../support/engine-fixture.ts';

const HOUR = 3_600_000;
/** Number of memories that are added, of those that are changed later, and of contradictions. */
const [ADDED, CHANGED, CONTRADICTIONS] = [40, 30, 20];
/** Number of rows after which the work ends, and greatest number of entries of a list. */
const [ROWS, LIMIT] = [10, 3];
/** Tags of the memories, in the length that is parsed. */
const TAGS = ['harbour'];

/** Checks that a difference counts each row as work while it reads it, and keeps no more entries than it shows. */
export async function diffWork({ tenant, clock, batch }: TestEngine): Promise<void> {
  const [stored, changed] = [START + HOUR, START + 2 * HOUR];
  clock.set(stored);
  const contents = Array.from({ length: ADDED }, (_, place) => `The ferry number ${place} leaves.`);
  await tenant.addMemories(contents.map((content) => newMemory({ content, userId: 'ana', tags: TAGS })));
  const { store } = batch.open();
  const rows = store.prepare('SELECT seq, id FROM memories ORDER BY seq').all() as { seq: number; id: string }[];
  clock.set(changed);
  for (const { id } of rows.slice(0, CHANGED)) await tenant.patchMemory(id, { title: 'late' });
  const numbers = rows.map(({ seq }) => seq);
  store.write(() => {
    for (const no of numbers.slice(0, CONTRADICTIONS))
      putStatedEdge(store, { src: no, dst: no + 1, type: 'contradicts' }, 1, changed);
  });

  const diff = (bytes: number, from: number, to: number, filter: MemoryFilter = {}) => {
    const request = { axis: 'recorded', fadedBelow: 0, limit: LIMIT, filter, topicIds: null, now: changed } as const;
    const budget = createWorkBudget({ bytes, deadlineMs: 60_000 });
    const read = () => store.read(() => readDiff(store, { ...request, from, to }));
    const { counts, degraded, added, contradicted, changed: late } = runWithin(budget, read);
    const shown = [added, late, contradicted].map((list) => list.length);
    return { counts: [counts.added, counts.changed, counts.contradicted], shown, degraded, left: budget.left };
  };
  const ample = 1_000_000;
  // Memories, changes and contradictions outside of the window are looked at, too.
  const whole = { degraded: false, left: ample - ROW_BYTES * (ADDED + CHANGED + CONTRADICTIONS) };
  expect(diff(ample, START, stored)).toEqual({ counts: [ADDED, 0, 0], shown: [LIMIT, 0, 0], ...whole });
  expect(diff(ample, stored, changed)).toEqual({
    ...{ counts: [0, CHANGED, CONTRADICTIONS], shown: [0, LIMIT, LIMIT] },
    ...whole,
  });
  const ofAna = diff(ample, stored, changed, { userIds: ['ana'] });
  expect(ofAna).toMatchObject({ counts: [0, CHANGED, CONTRADICTIONS], shown: [0, LIMIT, LIMIT], degraded: false });
  // The changes of a user count, too.
  expect(ofAna.left).toBeLessThanOrEqual(ample - ROW_BYTES * (ADDED + CHANGED + CONTRADICTIONS));
  const ofBen = diff(ample, stored, changed, { userIds: ['ben'] });
  expect(ofBen).toMatchObject({ counts: [0, 0, 0], degraded: false });
  // A file begins at the memories of the user, and PostgreSQL may begin at the changes.
  const others = store.ahead === null ? CONTRADICTIONS : CHANGED + CONTRADICTIONS;
  expect(ofBen.left).toBeGreaterThanOrEqual(ample - ROW_BYTES * others);
  const ended = { degraded: true, left: -ROW_BYTES };
  expect(diff(ROW_BYTES * ROWS, START, stored)).toMatchObject({ counts: [ROWS, 0, 0], ...ended });
  expect(diff(ROW_BYTES * ROWS, stored, changed)).toMatchObject({ counts: [0, 0, 0], ...ended });
  const until = (rows: number) => diff(ROW_BYTES * (ADDED + rows), stored, changed);
  expect(until(CHANGED + ROWS)).toMatchObject({ counts: [0, CHANGED, ROWS], ...ended });
  // The last memory may have further changes.
  expect(until(ROWS)).toMatchObject({ counts: [0, ROWS - 1, 0], ...ended });
  // What a condition has let through before it ended is shown.
  const parsed = ROW_BYTES + JSON.stringify(TAGS).length;
  const ofTag = diff(ROWS * (parsed + ROW_BYTES), START, stored, { tags: TAGS });
  expect(ofTag.counts[0]).toBeGreaterThanOrEqual(ROWS);
  expect(ofTag.degraded).toBe(true);
}
