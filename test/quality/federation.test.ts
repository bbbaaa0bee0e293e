import { afterAll, beforeAll, expect, test } from 'vitest';
import { discountedGainAt, mean, recallAt } from '../../bench/metrics.ts';
import { fused, interleaved, openSplitStores, type SplitStores } from '../../bench/split-set.ts';
import { OWN_SET } from './own-set.ts';

/**
 * Scores of different stores are comparable: two halves of a store, asked apart and merged, give nearly the order of
 * the whole. `npm run measure -- federation` measures the same on public sets.
 */
const K = 10;

let stores: SplitStores;
beforeAll(async () => {
  stores = await openSplitStores(OWN_SET, { count: 2, now: Date.UTC(2025, 5, 1) });
});
afterAll(() => stores[Symbol.asyncDispose]());

test('the merged answers of two halves find what the whole finds, in nearly its order', async () => {
  const found = { whole: [] as string[][], fused: [] as string[][], interleaved: [] as string[][] };
  const questions = OWN_SET.questions.filter(({ relevant }) => relevant.size > 0);
  for (const question of questions) {
    const options = { k: K, minScore: 0, relativeFloor: 0 };
    const answers = await stores.askParts(question, options);
    found.whole.push(await stores.askWhole(question, options));
    found.fused.push(fused(answers, K));
    found.interleaved.push(interleaved(answers, K));
  }
  const of = (measure: typeof recallAt, by: readonly string[][]) =>
    mean(by.map((keys, place) => measure(K, keys, questions[place]!.relevant)));
  const recalls = [of(recallAt, found.whole), of(recallAt, found.fused)] as const;
  const gains = [of(discountedGainAt, found.whole), of(discountedGainAt, found.fused)] as const;
  expect(recalls[1]).toBeGreaterThan(recalls[0] - 0.03);
  expect(gains[1]).toBeGreaterThan(gains[0] - 0.04);
  expect(gains[1]).toBeGreaterThan(of(discountedGainAt, found.interleaved));
});
