/**
 * Measures retrieval in each language of the project's own sets, through the real engine, beside plain FTS5:
 *
 *     node bench/eval-languages.ts [LANGUAGE…]
 *
 * All languages are users of one file, as a service with users of several countries has it. Except for the times, two
 * runs give the same numbers.
 */
import { LANGUAGE_SETS } from '../test/quality/languages/all.ts';
import { evaluationSetOf } from '../test/quality/languages/language-set.ts';
import type { EvaluationQuestion } from './datasets.ts';
import { openEvaluatedStore } from './evaluated-store.ts';
import { discountedGainAt, mean, recallAt } from './metrics.ts';

const NOW = Date.UTC(2025, 5, 1);
const K = 10;
const NO_FLOORS = { minScore: 0, relativeFloor: 0 } as const;

async function main(wanted: readonly string[]): Promise<void> {
  const set = evaluationSetOf(LANGUAGE_SETS);
  await using store = await openEvaluatedStore(set, { now: NOW });
  const ask = async (question: EvaluationQuestion, options: object) =>
    (await store.ask(question, { ...options, k: K })).hits.map(({ memory }) => memory.id);
  for (const question of store.questions) await ask(question, {});

  console.log(
    '| language | FTS5: R@1, R@10, nDCG@10 | Cairn: R@1, R@10, nDCG@10 | R@10 with floor | wrongly empty | p50, ms |',
  );
  console.log('| --- | ---: | ---: | ---: | ---: | ---: |');
  for (const { language } of LANGUAGE_SETS.filter(({ language }) => wanted.length === 0 || wanted.includes(language))) {
    const questions = store.questions.filter(({ userId, relevant }) => userId === language && relevant.size > 0);
    const plain = questions.map((question) => store.askPlainText(question, K));
    const [ours, floored, times]: [string[][], string[][], number[]] = [[], [], []];
    for (const question of questions) {
      const started = performance.now();
      floored.push(await ask(question, {}));
      times.push(performance.now() - started);
      ours.push(await ask(question, NO_FLOORS));
    }
    const recall = (k: number, found: readonly string[][]) =>
      figure(mean(questions.map(({ relevant }, place) => recallAt(k, found[place]!, relevant))));
    const gain = (found: readonly string[][]) =>
      figure(mean(questions.map(({ relevant }, place) => discountedGainAt(K, found[place]!, relevant))));
    const three = (found: readonly string[][]) => `${recall(1, found)}, ${recall(K, found)}, ${gain(found)}`;
    const empty = floored.filter((found) => found.length === 0).length;
    console.log(
      `| ${language} | ${three(plain)} | ${three(ours)} | ${recall(K, floored)} | ${empty} of ${questions.length} | ` +
        `${median(times).toFixed(1)} |`,
    );
  }
}

function figure(value: number): string {
  return value.toFixed(3).replace(/^0/, '');
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

await main(process.argv.slice(2));
