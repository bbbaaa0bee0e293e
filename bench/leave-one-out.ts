/**
 * Says of each constant of retrieval that was chosen by measuring what it would be with each set left out:
 *
 *     node bench/leave-one-out.ts PATH [--only PATTERN] [--every N] [--save FILE]
 *
 * PATH holds the folders that `datasets.ts` reads; the project's own sets are added. PATTERN selects constants by file
 * and name; `--every 2` asks every second question only. FILE keeps what was measured, a line of JSON each; what it
 * holds already is not measured again. The constants are set in this process only. Equal code and data give equal
 * tables.
 */
import fs from 'node:fs';
import { startProgress } from '../src/cli/progress.ts';
import { OWN_SET } from '../test/quality/own-set.ts';
import { BELIEF_USERS, EXACT_QUESTIONS } from '../test/quality/beliefs-set.ts';
import { LANGUAGE_SETS } from '../test/quality/languages/all.ts';
import { evaluationSetOf } from '../test/quality/languages/language-set.ts';
import { CHOSEN_CONSTANTS, type ChosenBy, type ChosenConstant } from './chosen-constants.ts';
import { type EvaluationQuestion, type EvaluationSet, loadEvaluationSets } from './datasets.ts';
import type { Asked, EvaluatedStore } from './evaluated-store.ts';
import { discountedGainAt, mean } from './metrics.ts';
import { passagesOf } from './passages.ts';
import { readArguments } from './read-arguments.ts';
import { makeSettable, setValue, valueOf } from './settable-constants.ts';
import { otherUsersQuestions, questionsOf, type Variant } from './variants.ts';

makeSettable(CHOSEN_CONSTANTS);
// Modules of the engine are imported after that, so that their constants can be set.
const { openEvaluatedStore } = await import('./evaluated-store.ts');

const NOW = Date.UTC(2025, 0, 1);
const K = 10;
/** Number of turns of a chat in a passage, which then has some 200 words. */
const PASSAGE = 8;
const STRANGE_QUESTIONS = 100;
/** Wrong answers to strange questions that weigh as much as an answer that is lost. */
const LOST_ANSWER = 10;
/** Share of the weight of a foreign question that another user's question has: its words may be right. */
const OTHER_USER = 1 / 3;
/** Least gain for which another value counts as better than the chosen one. */
const LEAST_GAIN = 0.001;

/** What a value of a constant reaches on a set. */
interface Measured {
  readonly constant: string;
  readonly value: number;
  readonly set: string;
  readonly reached: number;
}

async function main(): Promise<void> {
  const { positionals, values } = readArguments(
    'node bench/leave-one-out.ts PATH [--only PATTERN] [--every N] [--save FILE]',
    { only: { type: 'string', default: '' }, every: { type: 'string', default: '1' }, save: { type: 'string' } },
    ({ positionals }) => positionals.length === 1,
  );
  const constants = CHOSEN_CONSTANTS.filter((one) => new RegExp(values.only).test(labelOf(one)));
  const measured = values.save !== undefined && fs.existsSync(values.save) ? readLines(values.save) : [];
  const keep = (one: Measured) => {
    measured.push(one);
    if (values.save !== undefined) fs.appendFileSync(values.save, `${JSON.stringify(one)}\n`);
  };
  const every = Number(values.every);
  for (const measuredSet of setsOf(positionals[0]!, every)) await measureSet(measuredSet, constants, measured, keep);
  printTables(constants, measured);
}

function readLines(file: string): Measured[] {
  const lines = fs.readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Measured);
}

// ── Sets ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

interface MeasuredSet {
  readonly set: EvaluationSet;
  /** The kinds of constants that the set can judge. */
  readonly judges: readonly ChosenBy[];
  /** Only every question of this number is asked, beginning with the first; 1 asks all. */
  readonly every: number;
  /** Questions of other sets. */
  readonly strangers: readonly string[];
  /** Texts of other sets, as noise for a set with one user. */
  readonly noise: readonly string[];
  /** Returns the tags to which the question with this index is restricted; undefined for none. */
  readonly tagsAt?: (place: number) => readonly string[] | undefined;
}

function setsOf(directory: string, every: number): MeasuredSet[] {
  const publicSets = loadEvaluationSets(directory);
  const sets = [...publicSets, evaluationSetOf(LANGUAGE_SETS), { ...OWN_SET, name: 'own' }];
  const rest = (set: EvaluationSet) => sets.filter((other) => other !== set);
  const judging = (set: EvaluationSet, judges: readonly ChosenBy[]): MeasuredSet => ({
    set,
    judges,
    every,
    strangers: rest(set).flatMap(({ questions }) => questions.map(({ query }) => query)),
    noise: rest(set).flatMap(({ users }) => users.flatMap(({ memories }) => memories.map(({ content }) => content))),
  });
  const questions = EXACT_QUESTIONS.map(({ userId, query, exact }) => ({ userId, query, relevant: new Set(exact) }));
  return [
    ...sets.map((set) =>
      judging(set, [
        'order',
        'sentences',
        'floor',
        // The texts of the other sets are short, and the questions of Cranfield have no exact answers.
        ...(set.name === 'cranfield' || set.name === 'languages' ? (['topic'] as const) : []),
        ...(set.name === 'cranfield' ? [] : (['exact'] as const)),
      ]),
    ),
    ...publicSets.filter(({ name }) => name !== 'cranfield').map((set) => judging(passagesOf(set, PASSAGE), ['topic'])),
    {
      ...judging({ name: 'beliefs', users: BELIEF_USERS, questions }, ['exact']),
      tagsAt(place) {
        const { scope } = EXACT_QUESTIONS[place]!;
        return scope === undefined ? undefined : [scope];
      },
    },
  ];
}

// ── Measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────

async function measureSet(
  measuredSet: MeasuredSet,
  constants: readonly ChosenConstant[],
  known: readonly Measured[],
  keep: (measured: Measured) => void,
): Promise<void> {
  const { name } = measuredSet.set;
  const has = (constant: ChosenConstant, value: number) =>
    known.some((one) => one.set === name && one.constant === labelOf(constant) && one.value === value);
  const wanted = constants
    .filter(({ by }) => measuredSet.judges.includes(by))
    .flatMap((constant) => valuesOf(constant).map((value) => ({ constant, value })))
    .filter(({ constant, value }) => !has(constant, value));
  if (wanted.length === 0) return;
  await using store = await openEvaluatedStore(measuredSet.set, { now: NOW });
  const judges = judgesOf(store, measuredSet);
  const progress = startProgress(name, wanted.length);
  /** The result with the constants as they are in the code, by `ChosenBy`. */
  const asItIs = new Map<ChosenBy, number>();
  for (const [place, { constant, value }] of wanted.entries()) {
    const judge = judges[constant.by];
    const isChosen = value === chosenValueOf(constant);
    if (isChosen && !asItIs.has(constant.by)) asItIs.set(constant.by, await judge({}));
    const reached = isChosen ? asItIs.get(constant.by)! : await withValue(constant, value, judge);
    keep({ constant: labelOf(constant), value, set: name, reached });
    progress.update(place + 1, labelOf(constant));
  }
  progress.stop();
}

async function withValue(constant: ChosenConstant, value: number, judge: Judge): Promise<number> {
  if (constant.option !== undefined) return judge(constant.option(value));
  const chosen = valueOf(constant);
  setValue(constant, value);
  try {
    return await judge({});
  } finally {
    setValue(constant, chosen);
  }
}

/** Returns what the engine reaches on a set, higher is better. */
type Judge = (options: object) => Promise<number>;

function judgesOf(
  store: EvaluatedStore,
  { set, every, strangers, noise, tagsAt }: MeasuredSet,
): Record<ChosenBy, Judge> {
  const ask = async ({ userId, query }: Asked, options: object, tags?: readonly string[]) => {
    const filter = { userIds: [userId], ...(tags === undefined ? {} : { tags }) };
    const { hits } = await store.tenant.query({ ...options, query, k: K, filter, reinforce: false });
    return hits.map(({ memory }) => memory.id);
  };
  const questionsIn = (variant: Variant) => questionsOf({ ...set, questions: store.questions }, variant, noise);
  const answerableIn = (variant: Variant) =>
    questionsIn(variant).filter(({ relevant }, place) => place % every === 0 && relevant.size > 0);
  const gain = async (questions: readonly EvaluationQuestion[], options: object) =>
    average(questions, async (question) =>
      discountedGainAt(K, await ask(question, { ...options, minScore: 0 }), question.relevant),
    );
  const emptyShare = async (questions: readonly Asked[], options: object) =>
    average(questions, async (question) => Number((await ask(question, options)).length === 0));
  const step = Math.max(1, strangers.length / STRANGE_QUESTIONS);
  const foreign = Array.from({ length: STRANGE_QUESTIONS }, (_, place) => ({
    userId: set.users[place % set.users.length]!.userId,
    query: strangers[Math.floor(place * step)]!,
  }));
  const others = otherUsersQuestions(set, STRANGE_QUESTIONS);
  const order: Judge = (options) => gain(answerableIn('clean'), options);
  return {
    order,
    topic: order,
    sentences: async (options) => {
      const variants = ['clean', 'around', 'joined'] as const;
      return average(variants, (variant) => gain(answerableIn(variant), options));
    },
    floor: async (options) => {
      const lost = await emptyShare(answerableIn('clean'), options);
      const strange = await emptyShare(foreign, options);
      const ofOthers = others.length === 0 ? strange : await emptyShare(others, options);
      return (strange + OTHER_USER * ofOthers) / (1 + OTHER_USER) - LOST_ANSWER * lost;
    },
    exact: (options) =>
      average(
        [...store.questions.entries()].filter(([place]) => place % every === 0),
        async ([place, question]) => {
          const found = await ask(question, { ...options, cut: 'exact' }, tagsAt?.(place));
          return Number(found.length === question.relevant.size && found.every((id) => question.relevant.has(id)));
        },
      ),
  };
}

async function average<T>(list: readonly T[], measure: (one: T) => Promise<number>): Promise<number> {
  const values: number[] = [];
  for (const one of list) values.push(await measure(one));
  return mean(values);
}

// ── Report ───────────────────────────────────────────────────────────────────────────────────────────────────────────

function printTables(constants: readonly ChosenConstant[], measured: readonly Measured[]): void {
  for (const by of new Set(constants.map((constant) => constant.by))) {
    const chosen = constants.filter((constant) => constant.by === by);
    const names = new Set(chosen.map(labelOf));
    const sets = [...new Set(measured.filter(({ constant }) => names.has(constant)).map(({ set }) => set))];
    const heads = [
      'constant',
      'value',
      'by all sets',
      ...sets.map((set) => `without ${set}`),
      'gain of all sets',
      'least gain without one',
    ];
    const line = (cells: readonly string[]) => console.log(`| ${cells.join(' | ')} |`);
    console.log(`\n${by}\n`);
    line(heads);
    line(heads.map((_, place) => (place === 0 ? '---' : '--:')));
    for (const constant of chosen) line(cellsOf(constant, measured, sets));
  }
}

function cellsOf(constant: ChosenConstant, measured: readonly Measured[], sets: readonly string[]): string[] {
  const own = measured.filter((one) => one.constant === labelOf(constant));
  const reached = (value: number, left: readonly string[]) =>
    mean(left.map((set) => own.find((one) => one.set === set && one.value === value)?.reached ?? Number.NaN));
  const chosen = chosenValueOf(constant);
  const bestOf = (left: readonly string[]) =>
    valuesOf(constant).reduce((best, value) => {
      const least = best === chosen ? LEAST_GAIN : 0;
      return reached(value, left) > reached(best, left) + least ? value : best;
    }, chosen);
  const without = sets.map((set) => sets.filter((other) => other !== set));
  const gainOf = (left: readonly string[]) => reached(chosen, left) - reached(constant.off!, left);
  const gains = constant.off === undefined ? ['–', '–'] : [gainOf(sets), Math.min(...without.map(gainOf))].map(signed);
  return [labelOf(constant), `${chosen}`, ...[sets, ...without].map((left) => `${bestOf(left)}`), ...gains];
}

function signed(gain: number): string {
  return `${gain < 0 ? '−' : '+'}${Math.abs(gain).toFixed(4).replace(/^0/, '')}`;
}

function labelOf({ file, name }: ChosenConstant): string {
  return `${file.replace(/^.*\//, '')} ${name}`;
}

function chosenValueOf(constant: ChosenConstant): number {
  return constant.value ?? valueOf(constant);
}

/** The chosen value, the one at which the constant does nothing, and the others, by size. */
function valuesOf(constant: ChosenConstant): number[] {
  const { off, others } = constant;
  const values = [chosenValueOf(constant), ...(off === undefined ? [] : [off]), ...others];
  return [...new Set(values)].sort((a, b) => a - b);
}

await main();
