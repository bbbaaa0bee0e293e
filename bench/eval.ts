/**
 * Measures retrieval on public sets, through the real engine, beside raw FTS5 in the same run:
 *
 *     npm run eval -- PATH [--only NAME] [--profile P] [--rows PATTERN] [--variant V] [--size N] [--dynamics] [--json | --markdown]
 *
 * PATH holds the folders that `datasets.ts` reads. One more set, that of nine languages, is the project's own. docs/evaluation.md says what the rows and columns mean. But for the times,
 * the same data gives the same numbers.
 */
import { startProgress, type Progress } from '../src/cli/progress.ts';
import { bold, print, table } from '../src/cli/terminal.ts';
import { DAY_MS } from '../src/engine/dynamics.ts';
import { DEFAULT_OPTIONS } from '../src/engine/retrieve/options.ts';
import type { Store } from '../src/engine/store/open-store.ts';
import { PROFILES, type Profile, type RetrievalOptions } from '../src/engine/types.ts';
import { type EvaluationQuestion, type EvaluationSet, type EvaluationUser, loadEvaluationSets } from './datasets.ts';
import { type AskOptions, type Asked, type EvaluatedStore, openEvaluatedStore, padUsers } from './evaluated-store.ts';
import { averagePrecisionAt, discountedGainAt, mean, precision, recallAt, reciprocalRank } from './metrics.ts';
import { createRandom } from '../src/engine/random.ts';
import { readArguments } from './read-arguments.ts';
import { percentile } from './report.ts';
import { otherUsersQuestions, questionsOf, type Variant, VARIANTS } from './variants.ts';
import { LANGUAGE_SETS } from '../test/quality/languages/all.ts';
import { evaluationSetOf } from '../test/quality/languages/language-set.ts';

/** The time of every add and question: after the events of the public sets. */
const NOW = Date.UTC(2025, 0, 1);
const SHALLOW = 10;
const DEEP = 100;
const NO_FLOORS = { minScore: 0, relativeFloor: 0 } as const;
const FOREIGN_QUESTIONS = 100;
const WARM_UP = 50;

async function main(): Promise<void> {
  const { positionals, values } = readArguments(
    `npm run eval -- PATH [--only NAME] [--profile ${PROFILES.join('|')}] [--rows PATTERN] [--variant V] [--size N] [--dynamics] [--json | --markdown]`,
    {
      only: { type: 'string' },
      profile: { type: 'string', default: DEFAULT_OPTIONS.profile },
      rows: { type: 'string', default: '' },
      size: { type: 'string', default: '0' },
      variant: { type: 'string', default: 'clean' },
      dynamics: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      markdown: { type: 'boolean', default: false },
    },
    ({ positionals, values }) =>
      positionals.length === 1 &&
      (PROFILES as readonly string[]).includes(values.profile) &&
      (VARIANTS as readonly string[]).includes(values.variant),
  );
  const directory = positionals[0]!;
  const profile = values.profile as Profile;
  const variant = values.variant as Variant;
  const sets = [...loadEvaluationSets(directory), evaluationSetOf(LANGUAGE_SETS)];
  const rows = rowsOf(profile).filter(({ name }) => new RegExp(values.rows, 'i').test(name));
  for (const set of sets.filter(({ name }) => values.only === undefined || name === values.only)) {
    const others = sets.filter((other) => other !== set);
    const strangers = others.flatMap(({ questions }) => questions);
    const measured = await evaluate(set, rows, {
      foreign: foreignQuestions(set, strangers),
      others: otherUsersQuestions(set, FOREIGN_QUESTIONS),
      varied: (questions) =>
        questionsOf({ ...set, questions }, variant, others.flatMap(({ users }) => users).flatMap(contentsOf)),
      size: Number(values.size),
      dynamics: values.dynamics,
    });
    if (values.json) printJson(set.name, measured);
    else if (values.markdown) printMarkdown(set.name, measured);
    else printTable(set.name, measured);
  }
}

// ── Rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Row {
  readonly name: string;
  /** null asks plain FTS5. */
  readonly options: RetrievalOptions | null;
}

interface Stage {
  readonly name: string;
  readonly on: RetrievalOptions;
  readonly off: RetrievalOptions;
  /** Whether a query that says nothing about it has it on. */
  readonly byDefault: boolean;
}

const PRIOR_TO_TRY = 0.2;
const STAGES: readonly Stage[] = [
  { name: 'context', on: {}, off: { columnWeights: { context: 0 } }, byDefault: true },
  { name: 'vectors', on: {}, off: { vectorWeight: 0 }, byDefault: true },
  { name: 'links', on: {}, off: { maxHops: 0 }, byDefault: DEFAULT_OPTIONS.maxHops > 0 },
  { name: 'entities', on: { entityGraph: true }, off: { entityGraph: false }, byDefault: DEFAULT_OPTIONS.entityGraph },
  {
    name: 'session prior',
    on: { sessionPrior: DEFAULT_OPTIONS.sessionPrior || PRIOR_TO_TRY },
    off: { sessionPrior: 0 },
    byDefault: DEFAULT_OPTIONS.sessionPrior > 0,
  },
  { name: 'rerank', on: { rerank: 'builtin' }, off: { rerank: 'none' }, byDefault: true },
];

/** Each stage alone beside words, all together, all but one, and the other profiles. */
function rowsOf(profile: Profile): Row[] {
  const words = allOff();
  return [
    { name: 'raw FTS5', options: null },
    { name: 'words alone', options: words },
    { name: 'vectors alone', options: { ...words, vectorWeight: 1 } },
    ...STAGES.map((stage) => ({ name: `words + ${stage.name}`, options: { ...allOff(stage), ...stage.on } })),
    { name: 'everything', options: {} },
    ...STAGES.map(({ name, on, off, byDefault }) =>
      byDefault ? { name: `without ${name}`, options: off } : { name: `with ${name}`, options: on },
    ),
    ...PROFILES.filter((other) => other !== profile).map((other) => ({
      name: `profile ${other}`,
      options: { profile: other },
    })),
  ].map((row) => ({ ...row, options: row.options && { profile, ...row.options } }));
}

function allOff(except?: Stage): RetrievalOptions {
  return Object.assign({}, ...STAGES.filter((stage) => stage !== except).map(({ off }) => off)) as RetrievalOptions;
}

// ── Columns ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What came back for one question. */
interface Answer {
  readonly relevant: ReadonlySet<string>;
  /** With k = 10 and no floors. */
  readonly shallow: readonly string[];
  /** With k = 100 and no floors. */
  readonly deep: readonly string[];
  /** With k = 10 and the default floors. */
  readonly floored: readonly string[];
  readonly ms: number;
}

interface Answers {
  readonly answerable: readonly Answer[];
  readonly unanswerable: readonly Answer[];
  readonly foreign: readonly Answer[];
  readonly others: readonly Answer[];
}

interface Column {
  readonly group: 'k = 10' | 'k = 100' | 'k = 10, default floors' | 'ms';
  readonly name: string;
  readonly digits: number;
  readonly value: (answers: Answers) => number;
}

const over =
  (measure: (answer: Answer) => number, kind: keyof Answers = 'answerable') =>
  (answers: Answers) =>
    mean(answers[kind].map(measure));
const emptyShare = (kind: keyof Answers) => over(({ floored }) => (floored.length === 0 ? 1 : 0), kind);
const hitsOf = (kind: keyof Answers) => over(({ floored }) => floored.length, kind);
const times = ({ answerable, unanswerable }: Answers) => [...answerable, ...unanswerable].map(({ ms }) => ms);

const COLUMNS: readonly Column[] = [
  ...[1, 5, 10].map((k): Column => ({
    group: 'k = 10',
    name: `R@${k}`,
    digits: 4,
    value: over(({ shallow, relevant }) => recallAt(k, shallow, relevant)),
  })),
  {
    group: 'k = 10',
    name: 'MRR',
    digits: 4,
    value: over(({ shallow, relevant }) => reciprocalRank(shallow, relevant)),
  },
  {
    group: 'k = 10',
    name: 'nDCG@10',
    digits: 4,
    value: over(({ shallow, relevant }) => discountedGainAt(10, shallow, relevant)),
  },
  ...[10, 60].map((k): Column => ({
    group: 'k = 100',
    name: `R@${k}`,
    digits: 4,
    value: over(({ deep, relevant }) => recallAt(k, deep, relevant)),
  })),
  {
    group: 'k = 100',
    name: 'nDCG@10',
    digits: 4,
    value: over(({ deep, relevant }) => discountedGainAt(10, deep, relevant)),
  },
  {
    group: 'k = 100',
    name: 'MAP@100',
    digits: 4,
    value: over(({ deep, relevant }) => averagePrecisionAt(100, deep, relevant)),
  },
  {
    group: 'k = 10, default floors',
    name: 'R@10',
    digits: 4,
    value: over(({ floored, relevant }) => recallAt(10, floored, relevant)),
  },
  {
    group: 'k = 10, default floors',
    name: 'precision',
    digits: 3,
    value: ({ answerable }) =>
      mean(
        answerable
          .filter(({ floored }) => floored.length > 0)
          .map(({ floored, relevant }) => precision(floored, relevant)),
      ),
  },
  { group: 'k = 10, default floors', name: 'hits', digits: 2, value: hitsOf('answerable') },
  { group: 'k = 10, default floors', name: 'wrongly empty', digits: 3, value: emptyShare('answerable') },
  { group: 'k = 10, default floors', name: 'hits unanswerable', digits: 2, value: hitsOf('unanswerable') },
  { group: 'k = 10, default floors', name: 'rightly empty', digits: 3, value: emptyShare('unanswerable') },
  { group: 'k = 10, default floors', name: 'hits foreign', digits: 2, value: hitsOf('foreign') },
  { group: 'k = 10, default floors', name: 'foreign empty', digits: 3, value: emptyShare('foreign') },
  { group: 'k = 10, default floors', name: 'other user empty', digits: 3, value: emptyShare('others') },
  { group: 'ms', name: 'p50', digits: 2, value: (answers) => percentile(times(answers), 0.5) },
  { group: 'ms', name: 'p95', digits: 2, value: (answers) => percentile(times(answers), 0.95) },
];

// ── Measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Measured {
  readonly memories: number;
  readonly questions: Readonly<Record<keyof Answers, number>>;
  readonly rows: readonly { readonly name: string; readonly answers: Answers }[];
}

interface EvaluateOptions {
  readonly foreign: readonly Asked[];
  /** Questions of a user put to another one of the set. */
  readonly others: readonly Asked[];
  /** The set's questions as the variant asks them. */
  readonly varied: (questions: readonly EvaluationQuestion[]) => readonly EvaluationQuestion[];
  readonly size: number;
  readonly dynamics: boolean;
}

async function evaluate(
  set: EvaluationSet,
  rows: readonly Row[],
  { foreign, others, varied, size, dynamics }: EvaluateOptions,
): Promise<Measured> {
  const users = padUsers(set.users, size, createRandom(7));
  const total = users.reduce((sum, { memories }) => sum + memories.length, 0);
  const storing = startProgress(`${set.name}: storing`, 2 * total);
  await using store = await openEvaluatedStore(
    { users, questions: set.questions },
    {
      now: NOW,
      onProgress: (stored, finished) => storing.update(stored + finished),
      ...(dynamics ? { prepare: ageAtRandom } : {}),
    },
  );
  storing.stop();

  const questions = varied(store.questions);
  const withoutAnswer = (asked: readonly Asked[]) => asked.map((one) => ({ ...one, relevant: new Set<string>() }));
  const groups = {
    answerable: questions.filter(({ relevant }) => relevant.size > 0),
    unanswerable: questions.filter(({ relevant }) => relevant.size === 0),
    foreign: withoutAnswer(foreign),
    others: withoutAnswer(others),
  };
  const perRow = questions.length + foreign.length + others.length;
  const asking = startProgress(`${set.name}: asking`, rows.length * perRow);
  const measured: { name: string; answers: Answers }[] = [];
  for (const [place, { name, options }] of rows.entries()) {
    const search = searchWith(store, options);
    const progress = countFrom(asking, place * perRow, name);
    for (const question of store.questions.slice(0, WARM_UP)) await search(question, { k: SHALLOW });
    const answerAll = (questions: readonly EvaluationQuestion[]) => answersOf(questions, search, progress);
    measured.push({
      name,
      answers: {
        answerable: await answerAll(groups.answerable),
        unanswerable: await answerAll(groups.unanswerable),
        foreign: await answerAll(groups.foreign),
        others: await answerAll(groups.others),
      },
    });
  }
  asking.stop();
  const { answerable, unanswerable } = groups;
  return {
    memories: store.memories,
    questions: {
      answerable: answerable.length,
      unanswerable: unanswerable.length,
      foreign: foreign.length,
      others: others.length,
    },
    rows: measured,
  };
}

type Search = (question: Asked, options: AskOptions) => Promise<string[]>;

function searchWith(store: EvaluatedStore, row: RetrievalOptions | null): Search {
  if (row === null) return async (question, { k }) => store.askPlainText(question, k);
  return async (question, options) =>
    (await store.ask(question, { ...row, ...options })).hits.map(({ memory }) => memory.id);
}

async function answersOf(
  questions: readonly EvaluationQuestion[],
  search: Search,
  progress: () => void,
): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const question of questions) {
    const started = performance.now();
    const floored = await search(question, { k: SHALLOW });
    const ms = performance.now() - started;
    const isAnswerable = question.relevant.size > 0;
    answers.push({
      relevant: question.relevant,
      floored,
      ms,
      shallow: isAnswerable ? await search(question, { ...NO_FLOORS, k: SHALLOW }) : [],
      deep: isAnswerable ? await search(question, { ...NO_FLOORS, k: DEEP }) : [],
    });
    progress();
  }
  return answers;
}

function countFrom(progress: Progress, first: number, note: string): () => void {
  let done = first;
  return () => progress.update((done += 1), note);
}

/** Questions about something else altogether, put to the users in turn: what a good answer to them is empty. */
function foreignQuestions({ users }: EvaluationSet, strangers: readonly EvaluationQuestion[]): Asked[] {
  const step = Math.max(1, strangers.length / FOREIGN_QUESTIONS);
  return Array.from({ length: Math.min(FOREIGN_QUESTIONS, strangers.length) }, (_, place) => ({
    userId: users[place % users.length]!.userId,
    query: strangers[Math.floor(place * step)]!.query,
  }));
}

function contentsOf({ memories }: EvaluationUser): string[] {
  return memories.map(({ content }) => content);
}

/** Salience and last use at random within a year, which must not bury what fits. */
function ageAtRandom(store: Store): void {
  const random = createRandom(11);
  store.write(() => {
    const update = store.db.prepare(
      'UPDATE memory_dynamics SET salience = ?, salience_now = ?, last_seen_at = ? WHERE seq = ?',
    );
    const seqs = store.db.prepare('SELECT seq FROM memory_dynamics ORDER BY seq').pluck().all() as number[];
    for (const seq of seqs) {
      const salience = random() < 0.2 ? 0.4 + 0.6 * random() : 0.4;
      update.run(salience, salience, Math.floor(NOW - random() ** 3 * 365 * DAY_MS), seq);
    }
  });
}

// ── Printing ─────────────────────────────────────────────────────────────────────────────────────────────────────────

function printJson(set: string, { memories, questions, rows }: Measured): void {
  for (const { name, answers } of rows) {
    const figures = COLUMNS.map((column) => [`${column.group}: ${column.name}`, figureOf(column, answers)]);
    console.log(JSON.stringify({ set, memories, questions, row: name, ...Object.fromEntries(figures) }));
  }
}

/** null where there was nothing to measure. */
function figureOf({ value, digits }: Column, answers: Answers): number | null {
  const figure = value(answers);
  return Number.isNaN(figure) ? null : Number(figure.toFixed(digits));
}

/** One block a group, since all columns side by side are wider than a terminal. */
function printTable(set: string, measured: Measured): void {
  const { heads, body } = cellsOf(measured);
  print(bold(titleOf(set, measured)), '');
  for (const group of new Set(COLUMNS.map((column) => column.group))) {
    const inGroup = (_cell: string, place: number) => place === 0 || COLUMNS[place - 1]!.group === group;
    const rows = [heads.with(0, group), ...body].map((cells) => cells.filter(inGroup));
    print(...table(rows, `<${'>'.repeat(rows[0]!.length - 1)}`), '');
  }
}

function printMarkdown(set: string, measured: Measured): void {
  const { heads, body } = cellsOf(measured);
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  print(
    `### ${titleOf(set, measured)}`,
    '',
    line(heads.map((head, place) => (place === 0 ? head : head + GROUP_MARKS[COLUMNS[place - 1]!.group]))),
    line(heads.map((_, place) => (place === 0 ? '---' : '--:'))),
    ...body.map(line),
    '',
  );
}

const GROUP_MARKS: Readonly<Record<Column['group'], string>> = {
  'k = 10': '',
  'k = 100': ' (k = 100)',
  'k = 10, default floors': ' (floors)',
  ms: ' ms',
};

function titleOf(set: string, { memories, questions: { answerable, unanswerable, foreign } }: Measured): string {
  return `${set}: ${memories} memories; questions: ${answerable} with an answer, ${unanswerable} without, ${foreign} about something else`;
}

function cellsOf({ rows }: Measured): { heads: string[]; body: string[][] } {
  return {
    heads: ['', ...COLUMNS.map(({ name }) => name)],
    body: rows.map(({ name, answers }) => [
      name,
      ...COLUMNS.map((column) => figureOf(column, answers)?.toFixed(column.digits) ?? '–'),
    ]),
  };
}

await main();
