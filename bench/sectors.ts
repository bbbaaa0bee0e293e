/**
 * Measures both sector classifiers: accuracy and confusion on labelled sentences, and CPU for one sentence.
 * `--show=tuning` and `--show=held-out` print the sentences that are classified wrongly.
 */
import { classify, SECTOR_CLASSIFIERS } from '../src/engine/sectors/classify.ts';
import { SECTORS, type Sector } from '../src/engine/types.ts';
import { HELD_OUT_SENTENCES, TUNING_SENTENCES } from '../test/engine/sectors/labelled-sentences.ts';
import { readSetAside } from '../test/engine/sectors/set-aside.ts';

for (const classifier of SECTOR_CLASSIFIERS) {
  for (const [labelled, name] of [
    [TUNING_SENTENCES, 'tuning'],
    [HELD_OUT_SENTENCES, 'held-out'],
    [readSetAside(), 'set aside'],
  ] as const) {
    measure(classifier, labelled, name);
  }
}

const sentence =
  'Last Tuesday the payment service failed because the connection pool was exhausted, ' +
  'so Maria raised the limit to fifty and restarted all of the workers.';
const ROUNDS = 50_000;
for (const classifier of SECTOR_CLASSIFIERS) {
  // The best of five: neighbours on the machine would otherwise pass for work.
  const cpu = Array.from({ length: 5 }, () => {
    const start = process.cpuUsage();
    for (let round = 0; round < ROUNDS; round++) classify(sentence, classifier);
    const { user, system } = process.cpuUsage(start);
    return (user + system) / ROUNDS;
  });
  console.log(
    JSON.stringify({ bench: 'classify', classifier, characters: sentence.length, cpuMicroseconds: Math.min(...cpu) }),
  );
}

function measure(
  classifier: (typeof SECTOR_CLASSIFIERS)[number],
  labelled: Readonly<Record<Sector, readonly string[]>>,
  name: string,
): void {
  const confusion: Record<string, Record<string, number>> = {};
  let total = 0;
  let right = 0;
  let among = 0;
  for (const sector of SECTORS) {
    const row = Object.fromEntries(SECTORS.map((other) => [other, 0]));
    for (const text of labelled[sector]) {
      const { primary, additional } = classify(text, classifier);
      row[primary] = (row[primary] ?? 0) + 1;
      total++;
      if (primary === sector) right++;
      if (primary === sector || additional.includes(sector)) among++;
      if (primary !== sector && process.argv.includes(`--show=${name}`)) {
        console.log(`${sector} → ${primary}: ${text}`);
      }
    }
    confusion[sector] = row;
  }
  console.table(confusion);
  const accuracy = right / total;
  const figures = { count: total, accuracy, primaryOrAdditional: among / total };
  console.log(JSON.stringify({ bench: 'sectors', classifier, sentences: name, ...figures }));
}
