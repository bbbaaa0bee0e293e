import { expect, test } from 'vitest';
import type { DispatchParts } from '../../../src/engine/dispatch/dispatch-parts.ts';
import { fillLane } from '../../../src/engine/dispatch/fill-lane.ts';
import type { Lane } from '../../../src/engine/dispatch/lanes.ts';

/** Tenants that wait; it counts how often they are gone through. */
class CountedTenants extends Set<string> {
  walks = 0;
  override [Symbol.iterator]() {
    this.walks += 1;
    return super[Symbol.iterator]();
  }
}

test('tenants that wait are not gone through while the queue has no room', async () => {
  const tenants = new CountedTenants(['acme', 'else']);
  tenants.walks = 0;
  const lane: Lane = { step: 'encode', bulk: true, tenants, servedLast: undefined, servedAt: new Map() };
  const queues = { waiting: async () => ({ interactive: 1_000, bulk: 1_000 }) };
  const parts = { ledger: { together: null }, queues, signal: new AbortController().signal };
  expect(await fillLane(lane, parts as unknown as DispatchParts)).toBe('waiting');
  expect([tenants.walks, tenants.size]).toEqual([0, 2]);
});
