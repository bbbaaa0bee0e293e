import { expect, test } from 'vitest';
import { countSeries } from '../support/count-series.ts';

test('metrics of a thousand tenants with traffic, of a process that does everything, stay under 500 series and name nobody', async () => {
  const { few, many, byMetric, canaries } = await countSeries(1_000);
  console.log(`${few} series with a few tenants, ${many} with a thousand; ${byMetric.slice(0, 12).join(' ')}`);
  expect(many).toBeLessThanOrEqual(500);
  expect(canaries).toEqual([]);
});
