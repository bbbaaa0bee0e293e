import { expect, test } from 'vitest';
import { createDatabasePoller } from '../../../src/engine/dispatch/database-poller.ts';
import { systemClock } from '../../../src/engine/ports.ts';

test('a look at many tenants lets other work of the thread in between', async () => {
  const databases = { readRows: async () => () => null, readEach: async () => new Map(), keepOnly() {}, close() {} };
  const poller = createDatabasePoller({ databases, leaseMs: 1_000, clock: systemClock });
  let [turns, isOver] = [0, false];
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const { statuses } = await poller.look(Array.from({ length: 10_000 }, (_, n) => `t${n}`));
  isOver = true;
  expect(statuses).toHaveLength(10_000);
  expect(turns).toBeGreaterThanOrEqual(9);
});
