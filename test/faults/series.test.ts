import { expect, test } from 'vitest';
import { CANARIES, countSeries } from '../support/count-series.ts';

test('metrics of a thousand tenants with traffic stay under 500 series and name none of them', async () => {
  const { few, many, text } = await countSeries(1_000);
  console.log(`${few} series with a few tenants, ${many} with a thousand`);
  expect(many).toBeLessThanOrEqual(500);
  expect(text).not.toMatch(CANARIES);
});
