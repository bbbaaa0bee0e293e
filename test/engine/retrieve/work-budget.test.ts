import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../../../src/engine/config.ts';
import type { Tenant } from '../../../src/engine/engine.ts';
import { openEngine } from '../../../src/engine/open-engine.ts';
import { silentLogger } from '../../../src/engine/ports.ts';
import { createWorkBudget } from '../../../src/engine/store/work-budget.ts';
import type { MemoryQuery } from '../../../src/engine/types.ts';
import { newMemory } from '../../support/engine-fixture.ts';
import { tempFolder } from '../../support/temp-folder.ts';

/** 600 memories of 4 kB of metadata each: 2.4 MB, where one request may look at 1 MB. */
const METADATA = { colour: 'red', notes: 'n'.repeat(4_000) };
const query: MemoryQuery = {
  query: 'harbour',
  k: 5,
  filter: { metadata: { colour: 'red', size: { $gt: 1 } } },
};

async function openFilled(settings: Readonly<Record<string, string>>): Promise<Tenant> {
  const config = readConfig({
    OM_DB_PATH: path.join(tempFolder(), 'cairn.sqlite'),
    OM_EMBEDDINGS: 'none',
    OM_DECAY_REINFORCE_ON_QUERY: 'false',
    ...settings,
  });
  const engine = await openEngine({ config, logger: silentLogger });
  onTestFinished(() => engine.close());
  const tenant = await engine.tenant('default');
  for (let at = 0; at < 600; at += 100) {
    await tenant.addMemories(
      Array.from({ length: 100 }, (_, place) =>
        newMemory({
          content: `the harbour has pier ${at + place}`,
          metadata: { ...METADATA, ...(place % 25 === 0 ? { size: 2 } : {}) },
        }),
      ),
    );
  }
  return tenant;
}

test.each(['0', '1'])('a query ends with its work budget, with %s threads, and says so', async (threads) => {
  const tenant = await openFilled({ OM_QUERY_WORK_MB: '1', OM_QUERY_THREADS: threads });
  const first = await tenant.query(query);
  expect(first).toMatchObject({ degraded: true, degradedReasons: ['work_budget'] });
  expect(first.hits.length).toBeGreaterThan(0);
  const again = await tenant.query(query);
  const ids = (result: typeof first) => result.hits.map(({ memory }) => memory.id);
  expect(ids(again)).toEqual(ids(first));
  const whole = await tenant.query({ ...query, filter: {} });
  expect(whole).toMatchObject({ degraded: false, degradedReasons: [] });
});

test('the trials of an explanation share one budget, and what was not tried is named', async () => {
  const tenant = await openFilled({ OM_QUERY_WORK_MB: '5' });
  const [newest] = await tenant.listMemories({}, { limit: 1, offset: 0 });
  const failing = { ...query, filter: { metadata: { colour: 'red', size: { $gt: 9 } } } };
  expect((await tenant.query(failing)).degraded).toBe(false);
  const explanation = await tenant.explain(failing, newest!.id);
  expect(explanation).toMatchObject({ degraded: true, degradedReasons: ['work_budget'], outcome: 'filtered' });
  expect(explanation.failedFilters).toEqual(['filters.metadata.size']);
  expect(explanation.notTried.length).toBeGreaterThan(0);
});

test('a deadline ends the work where the budget does not', () => {
  let now = 0;
  const budget = createWorkBudget({ bytes: 1_000_000_000, deadlineMs: 100 }, () => now);
  expect(budget.spend(2_000_000)).toBe(true);
  now = 101;
  expect(budget.spend(2_000_000)).toBe(false);
  expect(budget.end).toBe('deadline');
  expect(budget.spend(0)).toBe(false);
});
