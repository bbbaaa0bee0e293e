import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { tendStandingUntil } from '../../src/api/run-standing.ts';
import type { Engine, Tenant } from '../../src/engine/index.ts';

test('while there is work, replies are received between two checks', async () => {
  const stop = new AbortController();
  let looks = 0;
  // A check that waits for nothing, as when another caller compares what is due.
  const tendStanding = () => {
    if (++looks === 1_000) stop.abort();
    return Promise.resolve('busy' as const);
  };
  const engine = {
    config: { OM_EVENTS: true },
    control: { listTenants: () => [{ id: 'default' }] },
    tended: new Set<string>(),
    tenant: () => Promise.resolve({ tendStanding } as unknown as Tenant),
  } as unknown as Engine;
  const tending = tendStandingUntil(stop.signal, engine);
  while (looks === 0) await nextTurn();
  expect(looks).toBeLessThan(1_000);
  stop.abort();
  await tending;
});
