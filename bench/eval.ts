/**
 * Measures retrieval on public sets, through the real engine, beside raw FTS5 in the same run:
 *
 *     npm run eval -- PATH [--only NAME] [--profile P] [--rows PATTERN] [--variant V]… [--passages N] [--size N]
 *                          [--dynamics] [--setting NAME=VALUE]… [--json | --markdown]
 *
 * PATH holds the folders that `datasets.ts` reads. Two more sets are part of the project: one in ten languages, and one
 * of chats and notes. docs/internals/evaluation.md says what the rows and columns mean. Except for the times, the same
 * data gives the same numbers.
 */
import { startProgress, type Progress } from '../src/cli/progress.ts';
import { DAY_MS } from '../src/engine/dynamics.ts';
import { DEFAULT_OPTIONS } from '../src/engine/retrieve/options.ts';
import type { SqliteStore } from '../src/engine/store/open-store.ts';
import { PROFILES, type Profile, type RetrievalOptions } from '../src/engine/types.ts';
import { type EvaluationQuestion, type EvaluationSet, type EvaluationUser, loadEvaluationSets } from './datasets.ts';
import { type AskOptions, type Asked, type EvaluatedStore, openEvaluatedStore, padUsers } from './evaluated-store.ts';
import { type Answer, type Answers, type Measured, printJson, printMarkdown, printTable } from './evaluation-report.ts';
import { createRandom } from '../src/engine/random.ts';
import { passagesOf } from './passages.ts';
import { readArguments } from './read-arguments.ts';
import { foreignQuestions, otherUsersQuestions, questionsOf, type Variant, VARIANTS } from './variants.ts';
import { LANGUAGE_SETS } from '../test/quality/languages/all.ts';
import { evaluationSetOf } from '../test/quality/languages/language-set.ts';
import { OWN_SET } from '../test/quality/own-set.ts';

/** Time of every add and question, Unix ms: after the events of the public sets. */
const NOW = Date.UTC(2025, 0, 1);
const SHALLOW = 10;
const DEEP = 100;
const NO_FLOORS = { minScore: 0, relativeFloor: 0 } as const;
const WARM_UP = 50;

async function main(): Promise<void> {
  const { positionals, values } = readArguments(
    `npm run eval -- PATH [--only NAME] [--profile ${PROFILES.join('|')}] [--rows PATTERN] [--variant V]… ` +
      '[--passages N] [--size N] [--dynamics] [--setting NAME=VALUE]… [--json | --markdown]',
    {
      only: { type: 'string' },
      profile: { type: 'string', default: DEFAULT_OPTIONS.profile },
      rows: { type: 'string', default: '' },
      passages: { type: 'string', default: '1' },
      size: { type: 'string', default: '0' },
      variant: { type: 'string', multiple: true, default: ['clean'] },
      dynamics: { type: 'boolean', default: false },
      setting: { type: 'string', multiple: true, default: [] },
      json: { type: 'boolean', default: false },
      markdown: { type: 'boolean', default: false },
    },
    ({ positionals, values }) =>
      positionals.length === 1 &&
      (PROFILES as readonly string[]).includes(values.profile) &&
      values.variant.every((variant) => (VARIANTS as readonly string[]).includes(variant)),
  );
  const directory = positionals[0]!;
  const profile = values.profile as Profile;
  const turns = Number(values.passages);
  const own = [evaluationSetOf(LANGUAGE_SETS), OWN_SET];
  const sets = [...loadEvaluationSets(directory), ...own].map((set) => (turns > 1 ? passagesOf(set, turns) : set));
  const rows = rowsOf(profile).filter(({ name }) => new RegExp(values.rows, 'i').test(name));
  for (const set of sets.filter(({ name }) => values.only === undefined || name === values.only)) {
    // The questions and sentences of the small set of chats and notes are asked of that set only.
    const others = sets.filter((other) => other !== set && other.name !== OWN_SET.name);
    const strangers = others.flatMap(({ questions }) => questions);
    const measured = await evaluate(set, rows, {
      foreign: foreignQuestions(set, strangers),
      others: otherUsersQuestions(set, set.questions.length),
      variants: values.variant as Variant[],
      varied: (questions, variant) =>
        questionsOf({ ...set, questions }, variant, others.flatMap(({ users }) => users).flatMap(contentsOf)),
      size: Number(values.size),
      dynamics: values.dynamics,
      settings: Object.fromEntries(values.setting.map((setting) => setting.split('=', 2))),
    });
    if (values.json) printJson(set.name, measured);
    else if (values.markdown) printMarkdown(set.name, measured);
    else printTable(set.name, measured);
  }
}

// ── Rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Row {
  readonly name: string;
  /** Options of the engine's queries; null asks plain FTS5. */
  readonly options: RetrievalOptions | null;
}

interface Stage {
  readonly name: string;
  readonly on: RetrievalOptions;
  readonly off: RetrievalOptions;
  /** Whether the stage is on in a query that does not name it. */
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

/** Rows of the report: words with each single stage, all stages, all stages but one, and the other profiles. */
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

// ── Measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────

interface EvaluateOptions {
  readonly foreign: readonly Asked[];
  /** Questions of one user that are put to another user of the set. */
  readonly others: readonly Asked[];
  /** The variants of the set's questions that are measured, at least one. */
  readonly variants: readonly Variant[];
  /** Changes the set's questions to a variant. */
  readonly varied: (questions: readonly EvaluationQuestion[], variant: Variant) => readonly EvaluationQuestion[];
  readonly size: number;
  readonly dynamics: boolean;
  /** Settings as the environment names them. */
  readonly settings: Readonly<Record<string, string>>;
}

async function evaluate(
  set: EvaluationSet,
  rows: readonly Row[],
  { foreign, others, variants, varied, size, dynamics, settings }: EvaluateOptions,
): Promise<Measured> {
  const users = padUsers(set.users, size, createRandom(7));
  const total = users.reduce((sum, { memories }) => sum + memories.length, 0);
  const storing = startProgress(`${set.name}: storing`, 2 * total);
  await using store = await openEvaluatedStore(
    { users, questions: set.questions },
    {
      now: NOW,
      settings,
      onProgress: (stored, finished) => storing.update(stored + finished),
      ...(dynamics ? { prepare: ageAtRandom } : {}),
    },
  );
  storing.stop();

  const withoutAnswer = (asked: readonly Asked[]) => asked.map((one) => ({ ...one, relevant: new Set<string>() }));
  const groups = {
    ...byAnswer(store.questions),
    foreign: withoutAnswer(foreign),
    others: withoutAnswer(others),
  };
  const perRow = variants.length * store.questions.length + foreign.length + others.length;
  const asking = startProgress(`${set.name}: asking`, rows.length * perRow);
  const measured: { name: string; answers: Answers }[] = [];
  for (const [place, { name, options }] of rows.entries()) {
    const search = searchWith(store, options);
    const progress = countFrom(asking, place * perRow, name);
    for (const question of store.questions.slice(0, WARM_UP)) await search(question, { k: SHALLOW });
    const answerAll = (questions: readonly EvaluationQuestion[], deep = false) =>
      answersOf(questions, { search, progress, deep });
    const strange = { foreign: await answerAll(groups.foreign), others: await answerAll(groups.others) };
    for (const variant of variants) {
      const { answerable, unanswerable } = byAnswer(varied(store.questions, variant));
      measured.push({
        name: variant === 'clean' ? name : `${name}, ${variant}`,
        answers: {
          answerable: await answerAll(answerable, variant === 'clean'),
          unanswerable: await answerAll(unanswerable),
          ...strange,
        },
      });
    }
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

function byAnswer(questions: readonly EvaluationQuestion[]) {
  return {
    answerable: questions.filter(({ relevant }) => relevant.size > 0),
    unanswerable: questions.filter(({ relevant }) => relevant.size === 0),
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
  { search, progress, deep }: { readonly search: Search; readonly progress: () => void; readonly deep: boolean },
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
      ...(isAnswerable && deep ? { deep: await search(question, { ...NO_FLOORS, k: DEEP }) } : {}),
    });
    progress();
  }
  return answers;
}

function countFrom(progress: Progress, first: number, note: string): () => void {
  let done = first;
  return () => progress.update((done += 1), note);
}

function contentsOf({ memories }: EvaluationUser): string[] {
  return memories.map(({ content }) => content);
}

/** Sets salience and last use at random within a year, which must not hide matching memories. */
function ageAtRandom(store: SqliteStore): void {
  const random = createRandom(11);
  store.write(() => {
    const update = store.db.prepare(
      'UPDATE memory_dynamics SET salience = ?, salience_now = ?, last_seen_at = ? WHERE seq = ?',
    );
    const memoryNos = store.db.prepare('SELECT seq FROM memory_dynamics ORDER BY seq').pluck().all() as number[];
    for (const memoryNo of memoryNos) {
      const salience = random() < 0.2 ? 0.4 + 0.6 * random() : 0.4;
      update.run(salience, salience, Math.floor(NOW - random() ** 3 * 365 * DAY_MS), memoryNo);
    }
  });
}

await main();
