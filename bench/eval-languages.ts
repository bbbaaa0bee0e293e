/**
 * Measures retrieval in each language of the project's own sets, through the real engine, beside plain FTS5:
 *
 *     node bench/eval-languages.ts [LANGUAGE…] [--kept-aside] [--variant V]…
 *
 * With `--kept-aside` it measures the languages on which no constant was chosen; `--variant` asks the questions as
 * `variants.ts` changes them. All languages are users of one file, as a service with users of several countries has it.
 * The second table says of each difference from plain FTS5 what chance would make of it. Two runs give the same
 * numbers.
 */
import { KEPT_ASIDE_SETS } from '../test/quality/kept-aside/all.ts';
import { LANGUAGE_SETS } from '../test/quality/languages/all.ts';
import { evaluationSetOf } from '../test/quality/languages/language-set.ts';
import type { EvaluationQuestion } from './datasets.ts';
import { type EvaluatedStore, openEvaluatedStore } from './evaluated-store.ts';
import { discountedGainAt, mean, pairedDifference, recallAt } from './metrics.ts';
import { readArguments } from './read-arguments.ts';
import { questionsOf, type Variant, VARIANTS } from './variants.ts';

const NOW = Date.UTC(2025, 5, 1);
const K = 10;
const NO_FLOORS = { minScore: 0, relativeFloor: 0 } as const;

async function main(): Promise<void> {
  const { positionals: wanted, values } = readArguments(
    'node bench/eval-languages.ts [LANGUAGE…] [--kept-aside] [--variant V]…',
    {
      'kept-aside': { type: 'boolean', default: false },
      variant: { type: 'string', multiple: true, default: ['clean'] },
    },
    ({ values: { variant } }) => variant.every((one) => (VARIANTS as readonly string[]).includes(one)),
  );
  const sets = values['kept-aside'] ? KEPT_ASIDE_SETS : LANGUAGE_SETS;
  const set = evaluationSetOf(sets);
  const languages = sets.map(({ language }) => language).filter((one) => wanted.length === 0 || wanted.includes(one));
  await using store = await openEvaluatedStore(set, { now: NOW });
  const measured: Measured[] = [];
  for (const variant of values.variant as Variant[]) {
    const questions = questionsOf({ ...set, questions: store.questions }, variant, []);
    for (const language of languages) measured.push(await measure(store, { language, variant, questions }));
  }
  printFigures(measured);
  printDifferences(measured);
}

// ── Measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Ids of the memories that one question found, best first. */
type Found = readonly string[];

/** What the questions of one language found in one variant. */
interface Measured {
  readonly language: string;
  readonly variant: Variant;
  /** Relevant ids of each question that has an answer. */
  readonly relevant: readonly ReadonlySet<string>[];
  readonly plain: readonly Found[];
  /** What Cairn found without floors. */
  readonly ours: readonly Found[];
  /** What Cairn found with the default floors. */
  readonly floored: readonly Found[];
  /** What Cairn found with the default floors for the questions that have no answer. */
  readonly unanswerable: readonly Found[];
}

async function measure(
  store: EvaluatedStore,
  {
    language,
    variant,
    questions,
  }: {
    readonly language: string;
    readonly variant: Variant;
    /** Questions of all languages. */
    readonly questions: readonly EvaluationQuestion[];
  },
): Promise<Measured> {
  const all = questions.filter(({ userId }) => userId === language);
  const answerable = all.filter(({ relevant }) => relevant.size > 0);
  const askAll = async (asked: readonly EvaluationQuestion[], options: object) => {
    const found: Found[] = [];
    for (const question of asked)
      found.push((await store.ask(question, { ...options, k: K })).hits.map(({ memory }) => memory.id));
    return found;
  };
  return {
    language,
    variant,
    relevant: answerable.map(({ relevant }) => relevant),
    plain: answerable.map((question) => store.askPlainText(question, K)),
    ours: await askAll(answerable, NO_FLOORS),
    floored: await askAll(answerable, {}),
    unanswerable: await askAll(
      all.filter(({ relevant }) => relevant.size === 0),
      {},
    ),
  };
}

// ── Report ───────────────────────────────────────────────────────────────────────────────────────────────────────────

type Measure = (found: Found, relevant: ReadonlySet<string>) => number;

const MEASURES: Readonly<Record<string, Measure>> = {
  'R@1': (found, relevant) => recallAt(1, found, relevant),
  'R@10': (found, relevant) => recallAt(K, found, relevant),
  'nDCG@10': (found, relevant) => discountedGainAt(K, found, relevant),
};

function printFigures(measured: readonly Measured[]): void {
  const names = Object.keys(MEASURES).join(', ');
  printHead([`FTS5: ${names}`, `Cairn: ${names}`, 'R@10 with floor', 'wrongly empty', 'rightly empty']);
  for (const one of measured) {
    const means = (found: readonly Found[]) =>
      Object.values(MEASURES)
        .map((measure) => figure(mean(valuesOf(one, found, measure))))
        .join(', ');
    const flooredRecall = figure(mean(valuesOf(one, one.floored, MEASURES['R@10']!)));
    printLine([
      nameOf(one),
      ...[means(one.plain), means(one.ours), flooredRecall, emptyOf(one.floored), emptyOf(one.unanswerable)],
    ]);
  }
}

/** Prints, of each difference from plain FTS5, its mean, its 95 % interval and its probability by chance. */
function printDifferences(measured: readonly Measured[]): void {
  console.log();
  printHead(Object.keys(MEASURES));
  for (const one of measured) {
    const cells = Object.values(MEASURES).map((measure) => {
      const difference = pairedDifference(valuesOf(one, one.ours, measure), valuesOf(one, one.plain, measure));
      const { low, high, chance } = difference;
      return `${signed(difference.mean)} (${signed(low)} … ${signed(high)}), p ${chance.toFixed(2).replace(/^0/, '')}`;
    });
    printLine([nameOf(one), ...cells]);
  }
}

function valuesOf({ relevant }: Measured, found: readonly Found[], measure: Measure): number[] {
  return relevant.map((own, place) => measure(found[place]!, own));
}

function nameOf({ language, variant }: Measured): string {
  return variant === 'clean' ? language : `${language}, ${variant}`;
}

function printHead(heads: readonly string[]): void {
  printLine(['language', ...heads]);
  printLine(['---', ...heads.map(() => '---:')]);
}

function printLine(cells: readonly string[]): void {
  console.log(`| ${cells.join(' | ')} |`);
}

function emptyOf(answers: readonly Found[]): string {
  return `${answers.filter((found) => found.length === 0).length} of ${answers.length}`;
}

function figure(value: number): string {
  return value.toFixed(3).replace(/^0/, '');
}

function signed(value: number): string {
  return `${value < 0 ? '−' : '+'}${figure(Math.abs(value))}`;
}

await main();
