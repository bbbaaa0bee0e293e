/**
 * Tries other values of constants of the floor on questions that had no part in their choice:
 *
 *     node bench/kept-aside.ts PATH [--only PATTERN]
 *
 * PATH holds the folders that `datasets.ts` reads. Added are the sets of test/quality/kept-aside, filled up to 200
 * memories a user. The constants are set in this process only. Equal code and data give equal tables.
 */
import { createRandom } from '../src/engine/random.ts';
import { KEPT_ASIDE_SETS } from '../test/quality/kept-aside/all.ts';
import { LANGUAGE_SETS } from '../test/quality/languages/all.ts';
import { evaluationSetOf } from '../test/quality/languages/language-set.ts';
import { OWN_SET } from '../test/quality/own-set.ts';
import { type EvaluationQuestion, type EvaluationSet, loadEvaluationSets } from './datasets.ts';
import type { Asked, EvaluatedStore } from './evaluated-store.ts';
import { discountedGainAt, mean } from './metrics.ts';
import { readArguments } from './read-arguments.ts';
import { type ConstantName, makeSettable, setValue, valueOf } from './settable-constants.ts';
import { foreignQuestions, otherUsersQuestions, questionsOf, type Variant } from './variants.ts';

interface Check extends ConstantName {
  readonly values: readonly number[];
  /** Names of the sets that had no part in the choice of the constant, or that judge it each by itself. */
  readonly sets: readonly string[];
  readonly variant: Variant;
  /** Whether the questions lose their question marks. */
  readonly unmarked?: boolean;
}

const CHECKS: readonly Check[] = [
  {
    ...{ file: 'retrieve/calibrate', name: 'GUESSED_FORMS', values: [1, 0.85, 0.7, 0.55] },
    ...{ sets: ['kept aside'], variant: 'clean' },
  },
  {
    ...{ file: 'retrieve/calibrate', name: 'PAIRS', values: [1, 0.85, 0.7] },
    ...{ sets: ['memdaily', 'ja', 'ko', 'th'], variant: 'clean' },
  },
  {
    ...{ file: 'retrieve/calibrate', name: 'AMONG_OTHERS', values: [1, 0.7, 0.5] },
    ...{ sets: ['locomo', 'memdaily', 'kept aside', 'own'], variant: 'around' },
  },
  {
    ...{ file: 'retrieve/evidence-meter', name: 'FORM_SHARE', values: [0, 0.4, 0.7, 1] },
    ...{ sets: ['kept aside'], variant: 'clean' },
  },
  {
    ...{ file: 'retrieve/evidence-meter', name: 'CJK_GAIN', values: [0, 1] },
    ...{ sets: ['memdaily', 'ja', 'ko', 'th', 'zh'], variant: 'clean' },
  },
  {
    ...{ file: 'retrieve/parts', name: 'UNASKED', values: [0.25, 0.5, 1] },
    ...{ sets: ['locomo', 'memdaily', 'kept aside', 'own'], variant: 'around', unmarked: true },
  },
];

makeSettable(CHECKS);
// Modules of the engine are imported after that, so that their constants can be set.
const { openEvaluatedStore, padUsers } = await import('./evaluated-store.ts');

const NOW = Date.UTC(2025, 0, 1);
const K = 10;
/** Greatest number of questions of one user that are put to another user. */
const OTHERS = 100;
/** Number of memories to which each user of the sets that were kept aside is filled up. */
const FILLED = 200;

async function main(): Promise<void> {
  const { positionals, values } = readArguments(
    'node bench/kept-aside.ts PATH [--only PATTERN]',
    { only: { type: 'string', default: '' } },
    ({ positionals }) => positionals.length === 1,
  );
  const checks = CHECKS.filter(({ name }) => new RegExp(values.only).test(name));
  const line = (cells: readonly string[]) => console.log(`| ${cells.join(' | ')} |`);
  const heads = ['constant', 'set', 'value', 'nDCG@10', 'wrongly empty', 'foreign empty', 'another user’s empty'];
  line(heads);
  line(heads.map((_, place) => (place < 2 ? '---' : '--:')));
  const sets = setsOf(positionals[0]!);
  for (const set of sets) {
    const own = checks.filter((check) => check.sets.includes(set.name));
    if (own.length === 0) continue;
    const rest = sets.filter((other) => other !== set);
    await using store = await openEvaluatedStore(set, { now: NOW });
    for (const check of own)
      for (const value of check.values) {
        const chosen = valueOf(check);
        setValue(check, value);
        const cells = await measure(store, check, set, rest);
        setValue(check, chosen);
        line([`\`${check.name}\``, set.name, `${value}${value === chosen ? ' (chosen)' : ''}`, ...cells]);
      }
  }
}

function setsOf(directory: string): EvaluationSet[] {
  const aside = evaluationSetOf(KEPT_ASIDE_SETS);
  const users = padUsers(aside.users, FILLED * aside.users.length, createRandom(7));
  const single = LANGUAGE_SETS.map((one) => ({ ...evaluationSetOf([one]), name: one.language }));
  return [
    ...loadEvaluationSets(directory),
    { ...aside, users, name: 'kept aside' },
    { ...OWN_SET, name: 'own' },
    ...single,
  ];
}

/** Returns the figures of a set with the constants as they are now, as the cells of a table. */
async function measure(
  store: EvaluatedStore,
  { variant, unmarked = false }: Check,
  set: EvaluationSet,
  rest: readonly EvaluationSet[],
): Promise<string[]> {
  const noise = rest.flatMap(({ users }) => users.flatMap(({ memories }) => memories.map(({ content }) => content)));
  const varied = (questions: readonly EvaluationQuestion[]) => {
    const asked = unmarked ? questions.map((one) => ({ ...one, query: withoutMarks(one.query) })) : questions;
    return questionsOf({ ...set, questions: asked }, variant, noise);
  };
  const emptyOf = async (questions: readonly EvaluationQuestion[]) => {
    const empty: boolean[] = [];
    for (const question of varied(questions)) empty.push((await store.ask(question, { k: K })).hits.length === 0);
    return empty;
  };
  const withoutAnswer = (questions: readonly Asked[]) =>
    questions.map((one) => ({ ...one, relevant: new Set<string>() }));
  const answerable = store.questions.filter(({ relevant }) => relevant.size > 0);
  const gains: number[] = [];
  for (const question of varied(answerable)) {
    const { hits } = await store.ask(question, { k: K, minScore: 0 });
    gains.push(
      discountedGainAt(
        K,
        hits.map(({ memory }) => memory.id),
        question.relevant,
      ),
    );
  }
  const lost = await emptyOf(answerable);
  const strangers = rest.flatMap(({ questions }) => questions);
  const foreign = await emptyOf(withoutAnswer(foreignQuestions(set, strangers)));
  const others = await emptyOf(withoutAnswer(otherUsersQuestions(set, OTHERS)));
  const share = (empty: readonly boolean[]) => (empty.length === 0 ? '–' : figure(mean(empty.map(Number))));
  return [figure(mean(gains)), `${lost.filter(Boolean).length} of ${lost.length}`, share(foreign), share(others)];
}

/** Returns a question with full stops in place of its question marks. */
function withoutMarks(question: string): string {
  return question.replaceAll('?', '.').replaceAll('？', '。').replaceAll('؟', '.');
}

function figure(value: number): string {
  return value.toFixed(3).replace(/^0/, '');
}

await main();
