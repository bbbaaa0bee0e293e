/** A dispatcher goes on after a part of its work failed, and loses nothing that it had begun. */
import { expect, test } from 'vitest';
import type { QueuedJob } from '../../../src/engine/dispatch/dispatch-ports.ts';
import type { DispatchBatch } from '../../../src/engine/store/dispatch.ts';
import { dispatchOver } from '../../support/dispatch-over.ts';

const names = (count: number) => Array.from({ length: count }, (_, n) => `t${String(n).padStart(3, '0')}`);

test('rows that were taken are added although a later ledger of the round cannot be read', async () => {
  const tenants = names(40);
  const rows = new Set([tenants[0]!]);
  const added: QueuedJob[] = [];
  let failures = 0;
  const dispatcher = dispatchOver(
    {
      together: {
        dueSteps: async (hinted) => new Map(hinted.map((tenant) => [tenant, { interactive: ['encode'], bulk: [] }])),
        async peek(asked) {
          if (!asked.includes(tenants[0]!) && (failures += 1) > 0) throw new Error('the database does not answer');
          return new Map(asked.map((tenant) => [tenant, rows.has(tenant) ? 'full' : 'none']));
        },
      },
      take: async (tenant) => (rows.delete(tenant) ? BATCH : undefined),
    },
    { add: async (_step, jobs) => void added.push(...jobs) },
  );
  for (const tenant of tenants) dispatcher.dispatch(tenant, 'encode');
  await expect.poll(() => failures).toBeGreaterThan(0);
  await expect.poll(() => added.map(({ payload }) => payload.tenant)).toEqual([tenants[0]]);
});

test('one ledger that cannot be read keeps back no others that were hinted with it', async () => {
  const tenants = names(40);
  const read: string[][] = [];
  const dispatcher = dispatchOver({
    together: {
      async dueSteps(hinted) {
        if (hinted.includes(tenants[7]!)) throw new Error('canceling statement due to statement timeout');
        read.push([...hinted]);
        return new Map();
      },
      peek: async () => new Map(),
    },
  });
  for (const tenant of tenants) dispatcher.dispatch(tenant, 'encode');
  const others = tenants.filter((_, place) => place !== 7);
  await expect.poll(() => [...new Set(read.flat())].sort(), { timeout: 10_000 }).toEqual(others);
  dispatcher.dispatch(tenants[8]!, 'encode');
  await expect.poll(() => read.flat().filter((tenant) => tenant === tenants[8]), { timeout: 10_000 }).toHaveLength(2);
});

test('all is handed out again, as often as it takes, after queues lost their data', async () => {
  let [lost, tries] = [true, 0];
  const forgotten: string[] = [];
  dispatchOver(
    {
      async listUnfinished() {
        tries += 1;
        if (tries < 3) throw new Error('the database does not answer');
        return ['acme', 'zoo'];
      },
      forget: async (tenant) => forgotten.push(tenant),
    },
    { haveForgotten: async () => lost && !(lost = false) },
  );
  await expect.poll(() => forgotten, { timeout: 10_000 }).toEqual(['acme', 'zoo']);
  expect(tries).toBe(3);
});

const BATCH: DispatchBatch = { name: 'a batch', bulk: false, alone: false, jobNos: [1, 2], traces: [] };
