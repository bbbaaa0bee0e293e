/**
 * Measures the sector classifier: accuracy and confusion on the labelled sentences it was tuned on and on the others,
 * and its time. `--show=tuning` and `--show=held-out` print the sentences that it classifies wrongly.
 */
import { classify } from '../src/engine/sectors/classify.ts';
import { SECTORS } from '../src/engine/types.ts';
import { HELD_OUT_SENTENCES, TUNING_SENTENCES } from '../test/engine/sectors/labelled-sentences.ts';

for (const [labelled, name] of [
  [TUNING_SENTENCES, 'tuning'],
  [HELD_OUT_SENTENCES, 'held-out'],
] as const) {
  const confusion: Record<string, Record<string, number>> = {};
  let total = 0;
  let right = 0;
  let among = 0;
  for (const sector of SECTORS) {
    const row = Object.fromEntries(SECTORS.map((other) => [other, 0]));
    for (const sentence of labelled[sector]) {
      const { primary, additional } = classify(sentence);
      row[primary] = (row[primary] ?? 0) + 1;
      total++;
      if (primary === sector) right++;
      if (primary === sector || additional.includes(sector)) among++;
      if (primary !== sector && process.argv.includes(`--show=${name}`))
        console.log(`${sector} → ${primary}: ${sentence}`);
    }
    confusion[sector] = row;
  }
  console.table(confusion);
  console.log(
    JSON.stringify({
      bench: 'sectors',
      sentences: name,
      count: total,
      accuracy: right / total,
      primaryOrAdditional: among / total,
    }),
  );
}

const sentence =
  'Last Tuesday the payment service failed because the connection pool was exhausted, ' +
  'so Maria raised the limit to fifty and restarted all of the workers.';
for (let round = 0; round < 20_000; round++) classify(sentence);
const start = performance.now();
const rounds = 50_000;
for (let round = 0; round < rounds; round++) classify(sentence);
console.log(
  JSON.stringify({
    bench: 'classify',
    characters: sentence.length,
    microseconds: ((performance.now() - start) * 1000) / rounds,
  }),
);
