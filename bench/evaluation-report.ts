/** The report of `npm run eval`: the columns, their figures from the answers, and three ways to print them. */
import { bold, print, table } from '../src/cli/terminal.ts';
import { averagePrecisionAt, discountedGainAt, mean, precision, recallAt, reciprocalRank } from './metrics.ts';
import { percentile } from './report.ts';

/** Ids of the memories that answered one question. */
export interface Answer {
  readonly relevant: ReadonlySet<string>;
  /** Hits with k = 10 and no floors, best first. */
  readonly shallow: readonly string[];
  /** Hits with k = 100 and no floors, best first; left out where that was not asked. */
  readonly deep?: readonly string[];
  /** Hits with k = 10 and the default floors, best first. */
  readonly floored: readonly string[];
  readonly ms: number;
}

/** Answers to the questions of a set, by the kind of question. */
export interface Answers {
  /** Questions that have an answer among the memories of their user. */
  readonly answerable: readonly Answer[];
  /** Questions of the set that have no answer. */
  readonly unanswerable: readonly Answer[];
  /** Questions of other sets, about other subjects. */
  readonly foreign: readonly Answer[];
  /** Questions of one user of the set, put to another user. */
  readonly others: readonly Answer[];
}

export interface Measured {
  readonly memories: number;
  readonly questions: Readonly<Record<keyof Answers, number>>;
  readonly rows: readonly { readonly name: string; readonly answers: Answers }[];
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
const overDeep =
  (measure: (found: readonly string[], relevant: ReadonlySet<string>) => number) =>
  ({ answerable }: Answers) =>
    mean(answerable.flatMap(({ deep, relevant }) => (deep === undefined ? [] : [measure(deep, relevant)])));
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
    value: overDeep((found, relevant) => recallAt(k, found, relevant)),
  })),
  {
    group: 'k = 100',
    name: 'nDCG@10',
    digits: 4,
    value: overDeep((found, relevant) => discountedGainAt(10, found, relevant)),
  },
  {
    group: 'k = 100',
    name: 'MAP@100',
    digits: 4,
    value: overDeep((found, relevant) => averagePrecisionAt(100, found, relevant)),
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

// ── Printing ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export function printJson(set: string, { memories, questions, rows }: Measured): void {
  for (const { name, answers } of rows) {
    const figures = COLUMNS.map((column) => [nameOf(column), figureOf(column, answers)]);
    console.log(JSON.stringify({ set, memories, questions, row: name, ...Object.fromEntries(figures) }));
  }
}

/** A column's figure, rounded; null if there was nothing to measure. */
function figureOf({ value, digits }: Column, answers: Answers): number | null {
  const figure = value(answers);
  return Number.isNaN(figure) ? null : Number(figure.toFixed(digits));
}

/** Prints one block per group of columns, since all columns side by side are wider than a terminal. */
export function printTable(set: string, measured: Measured): void {
  const { heads, body } = cellsOf(measured, COLUMNS);
  print(bold(titleOf(set, measured)), '');
  for (const group of new Set(COLUMNS.map((column) => column.group))) {
    const inGroup = (_cell: string, place: number) => place === 0 || COLUMNS[place - 1]!.group === group;
    const rows = [heads.with(0, group), ...body].map((cells) => cells.filter(inGroup));
    print(...table(rows, `<${'>'.repeat(rows[0]!.length - 1)}`), '');
  }
}

/** The columns of a table for a document, which has no room for all. */
const CHIEF: ReadonlySet<string> = new Set([
  ...['R@1', 'R@10', 'nDCG@10'].map((name) => `k = 10: ${name}`),
  'k = 100: R@60',
  ...['R@10', 'wrongly empty', 'rightly empty', 'foreign empty', 'other user empty'].map(
    (name) => `k = 10, default floors: ${name}`,
  ),
  'ms: p50',
  'ms: p95',
]);

/** Prints the chief columns for a document. */
export function printMarkdown(set: string, measured: Measured): void {
  const chief = COLUMNS.filter((column) => CHIEF.has(nameOf(column)));
  const { heads, body } = cellsOf(measured, chief);
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  print(
    `### ${titleOf(set, measured)}`,
    '',
    line(heads.map((head, place) => (place === 0 ? head : head + GROUP_MARKS[chief[place - 1]!.group]))),
    line(heads.map((_, place) => (place === 0 ? '---' : '--:'))),
    ...body.map(line),
    '',
  );
}

function nameOf({ group, name }: Column): string {
  return `${group}: ${name}`;
}

const GROUP_MARKS: Readonly<Record<Column['group'], string>> = {
  'k = 10': '',
  'k = 100': ' (k = 100)',
  'k = 10, default floors': ' (floors)',
  ms: ' ms',
};

function titleOf(set: string, { memories, questions: { answerable, unanswerable, foreign } }: Measured): string {
  const questions = `${answerable} with an answer, ${unanswerable} without, ${foreign} about something else`;
  return `${set}: ${memories} memories; questions: ${questions}`;
}

function cellsOf({ rows }: Measured, columns: readonly Column[]): { heads: string[]; body: string[][] } {
  return {
    heads: ['', ...columns.map(({ name }) => name)],
    body: rows.map(({ name, answers }) => [
      name,
      ...columns.map((column) => figureOf(column, answers)?.toFixed(column.digits) ?? '–'),
    ]),
  };
}
