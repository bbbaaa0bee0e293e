import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { listMatchingMemoryNos } from '../../../src/engine/store/memories.ts';
import { openStore } from '../../../src/engine/store/open-store.ts';
import { createWorkBudget, ROW_BYTES, runWithin } from '../../../src/engine/store/work-budget.ts';
import { seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = 1_000_000;
const MEMORIES = 4_500;
const AT_ONCE = 2_000;

test('what matches is listed in pieces, each of which looks at few memories', async () => {
  const store = openStore(path.join(tempFolder(), 'pieces.sqlite'), { role: 'worker', create: true });
  onTestFinished(() => store.close());
  const seeds = Array.from({ length: MEMORIES }, (_, at) => ({
    content: `${at}`,
    tags: at % 1_000 < 3 ? ['old'] : [],
  }));
  const seeded = await seedMemories(store, seeds, NOW);
  const expected = seeded.filter((_, at) => at % 1_000 < 3).map(({ memoryNo }) => memoryNo);

  const found: number[] = [];
  let pieces = 0;
  for (let after: number | null = 0; after !== null; pieces += 1) {
    let bytes = 0;
    const budget = {
      ...createWorkBudget({ bytes: Infinity, deadlineMs: Infinity }),
      spend: (more: number) => ((bytes += more), true),
    };
    const piece = runWithin(budget, () =>
      listMatchingMemoryNos(store, { tags: ['old'] }, { after: after ?? 0, limit: 4, now: NOW }),
    );
    expect(bytes).toBeLessThanOrEqual(AT_ONCE * (ROW_BYTES + '["old"]'.length));
    found.push(...piece.memoryNos);
    after = piece.next;
  }
  expect(found).toEqual(expected);
  expect(pieces).toBeGreaterThan(MEMORIES / AT_ONCE);
  const none = listMatchingMemoryNos(store, { userIds: ['nobody'] }, { after: 0, limit: 4, now: NOW });
  expect(none).toEqual({ memoryNos: [], next: null });
});
