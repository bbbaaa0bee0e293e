/**
 * What a federated question loses: `npm run measure -- federation PATH [PARTS]`. Each set of PATH (`datasets.ts`) is
 * stored whole, and split by sessions into PARTS files (2 by default). The same questions are put to the whole and to
 * the parts, whose answers are merged by calibrated score, and by rank alone to compare with. Prints one JSON line per
 * figure.
 */
import { loadEvaluationSets } from './datasets.ts';
import { discountedGainAt, mean, precision, recallAt } from './metrics.ts';
import { report } from './report.ts';
import { fused, interleaved, openSplitStores } from './split-set.ts';

const PATH = process.argv[2]!;
const PARTS = Number(process.argv[3] ?? 2);
const NOW = Date.UTC(2025, 0, 1);
const K = 10;
const NO_FLOORS = { minScore: 0, relativeFloor: 0 } as const;

for (const { name, users, questions } of loadEvaluationSets(PATH)) {
  await using stores = await openSplitStores({ users }, { count: PARTS, now: NOW });
  for (const [floor, options] of [
    ['none', { ...NO_FLOORS, k: K }],
    ['default', { k: K }],
  ] as const) {
    const found = { whole: [] as string[][], fused: [] as string[][], interleaved: [] as string[][] };
    const relevant: ReadonlySet<string>[] = [];
    let empty = { whole: 0, fused: 0 };
    for (const question of questions) {
      const whole = await stores.askWhole(question, options);
      const answers = await stores.askParts(question, options);
      if (question.relevant.size === 0) {
        empty = {
          whole: empty.whole + Number(whole.length === 0),
          fused: empty.fused + Number(answers.every((hits) => hits.length === 0)),
        };
        continue;
      }
      relevant.push(question.relevant);
      found.whole.push(whole);
      found.fused.push(fused(answers, K));
      found.interleaved.push(interleaved(answers, K));
    }
    const meanOf = (measure: (found: readonly string[], relevant: ReadonlySet<string>) => number, by: string[][]) =>
      mean(by.map((keys, place) => measure(keys, relevant[place]!)));
    for (const [merged, by] of Object.entries(found))
      report(`${name}_${merged}`, meanOf(discountedGainAt.bind(null, K), by), {
        ...{ parts: PARTS, floor, questions: by.length },
        'recall@10': meanOf(recallAt.bind(null, K), by),
        'recall@1': meanOf(recallAt.bind(null, 1), by),
        same_first_ten: mean(
          by.map((keys, place) => {
            const whole = found.whole[place]!;
            return whole.length === 0 ? Number(keys.length === 0) : precision(whole, new Set(keys));
          }),
        ),
      });
    report(`${name}_rightly_empty`, empty.fused, { floor, whole: empty.whole });
  }
}
