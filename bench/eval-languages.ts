/**
 * Measures retrieval in each language of the project's own sets, through the real engine, beside plain FTS5:
 *
 *     node bench/eval-languages.ts [LANGUAGE…] [--kept-aside]
 *
 * With `--kept-aside` it measures the languages on which no constant was chosen. All languages are users of one file,
 * as a service with users of several countries has it. Except for the times, two runs give the same numbers.
 */
import { KEPT_ASIDE_SETS } from '../test/quality/kept-aside/all.ts';
import { LANGUAGE_SETS } from '../test/quality/languages/all.ts';
import { evaluationSetOf } from '../test/quality/languages/language-set.ts';
import type { EvaluationQuestion } from './datasets.ts';
import { openEvaluatedStore } from './evaluated-store.ts';
import { discountedGainAt, mean, recallAt } from './metrics.ts';
import { readArguments } from './read-arguments.ts';

const NOW = Date.UTC(2025, 5, 1);
const K = 10;
const NO_FLOORS = { minScore: 0, relativeFloor: 0 } as const;

async function main(): Promise<void> {
  const { positionals: wanted, values } = readArguments(
    'node bench/eval-languages.ts [LANGUAGE…] [--kept-aside]',
    { 'kept-aside': { type: 'boolean', default: false } },
    () => true,
  );
  const sets = values['kept-aside'] ? KEPT_ASIDE_SETS : LANGUAGE_SETS;
  const set = evaluationSetOf(sets);
  await using store = await openEvaluatedStore(set, { now: NOW });
  const ask = async (question: EvaluationQuestion, options: object) =>
    (await store.ask(question, { ...options, k: K })).hits.map(({ memory }) => memory.id);
  for (const question of store.questions) await ask(question, {});

  console.log(
    '| language | FTS5: R@1, R@10, nDCG@10 | Cairn: R@1, R@10, nDCG@10 | R@10 with floor | wrongly empty | ' +
      'rightly empty | p50, ms |',
  );
  console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: |');
  for (const { language } of sets.filter(({ language }) => wanted.length === 0 || wanted.includes(language))) {
    const all = store.questions.filter(({ userId }) => userId === language);
    const questions = all.filter(({ relevant }) => relevant.size > 0);
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
    const unanswerable: string[][] = [];
    for (const question of all.filter(({ relevant }) => relevant.size === 0))
      unanswerable.push(await ask(question, {}));
    console.log(
      `| ${language} | ${three(plain)} | ${three(ours)} | ${recall(K, floored)} | ${emptyOf(floored)} | ` +
        `${emptyOf(unanswerable)} | ${median(times).toFixed(1)} |`,
    );
  }
}

function emptyOf(answers: readonly (readonly string[])[]): string {
  return `${answers.filter((found) => found.length === 0).length} of ${answers.length}`;
}

function figure(value: number): string {
  return value.toFixed(3).replace(/^0/, '');
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

await main();
