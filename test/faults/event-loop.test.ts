import { expect, test } from 'vitest';
import { startServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

const MEMORIES = 3_000;
const BATCH = 100;
/** Ten times what is expected: a guard against work that has moved to the wrong thread. */
const GUARD_MS = 500;

test('while the worker encodes a backlog, the thread that serves requests stays free', async () => {
  const folder = tempFolder();
  const service = await startServiceProcess({ folder, settings: { OM_VEC_DIM: '768' } });
  for (let first = 0; first < MEMORIES; first += BATCH) {
    const items = Array.from({ length: BATCH }, (_, number) => ({
      content: `Parcel ${first + number} was left with a neighbour because nobody was at home to sign for it`,
    }));
    expect((await service.request('POST', '/memory/add/batch', { body: { items } })).status).toBe(202);
  }
  // The delay is measured anew from each reading on.
  await service.request('GET', '/metrics');
  const lags: { p50: number; p99: number; max: number }[] = [];
  while ((await countUnfinished()) > 0) {
    const metrics = (await service.request('GET', '/metrics')).text;
    const read = (name: string) =>
      Number(new RegExp(`^nodejs_eventloop_lag_${name}_seconds (\\S+)`, 'm').exec(metrics)?.[1]) * 1_000;
    lags.push({ p50: read('p50'), p99: read('p99'), max: read('max') });
  }
  expect(lags.length).toBeGreaterThan(0);
  const worst = (name: 'p50' | 'p99' | 'max') => Math.max(...lags.map((lag) => lag[name])).toFixed(1);
  console.log(
    `event loop while encoding, worst of ${lags.length} readings: p50 ${worst('p50')} ms, p99 ${worst('p99')} ms, max ${worst('max')} ms`,
  );
  expect(Number(worst('p99'))).toBeLessThan(GUARD_MS);

  async function countUnfinished(): Promise<number> {
    const { queued, active } = (await service.request('GET', '/jobs?l=1')).body.counts;
    return queued + active;
  }
});
