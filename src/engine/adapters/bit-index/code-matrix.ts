import { assert } from '../../errors.ts';
import type { VectorCode } from '../../store/vector-codes.ts';
import type { HeldVectors, Question } from '../following-index/following-index.ts';
import { addressOf, bytesOfCodes, createCodes, labelReader, reserveRows, turnColumns } from './codes.ts';
import type { KernelChoice } from './create-kernels.ts';
import { createSides } from './dimensions.ts';
import { nearestAmong, nearestOf, scanColumns } from './passes.ts';
import {
  addRow,
  bytesOfRows,
  countRemoval,
  countRows,
  createRows,
  findRow,
  FLAGS,
  isCutOff,
  listRows,
} from './rows.ts';
import { beginSearches, candidatesWanted, type Matrix } from './searches.ts';

/**
 * The sign bits of one model's vectors in memory, in the order of their numbers. A vector of 768 dimensions takes 200
 * bytes and 20 more for its user, memory and number. A search has two passes: first the highest-weighted sign bits of
 * every row, then the question with its components, not as bits, against the nearest of those rows. Neither pass
 * depends on chance or time, so the same rows give the same answer. Of equally near vectors the older one comes first.
 */
export type CodeMatrix = HeldVectors<VectorCode>;

/**
 * Rows from which on columns are made as rows are added. A smaller index makes them for the first search that scans it.
 */
const MIN_TURNED = 8_192;
/** Rows that the first pass measures in the time that it takes to find one row of a user and measure it. */
const TURNS_A_LISTED_ROW = 32;

/**
 * Creates an empty matrix.
 * @param dimensions a multiple of 8 up to `MAX_DIMENSIONS`
 * @throws EngineError `internal` for other dimensions; `invalid` for kernels that do not run on this machine
 */
export function createCodeMatrix(dimensions: number, kernels: KernelChoice = 'auto'): CodeMatrix {
  const matrix: Matrix = {
    codes: createCodes(dimensions, kernels),
    rows: createRows(),
    sides: createSides(dimensions),
  };
  const { codes, rows } = matrix;
  return {
    get count() {
      return countRows(rows, undefined);
    },
    get removed() {
      return rows.removed;
    },
    get bytes() {
      return bytesOfCodes(codes, rows.size) + bytesOfRows(rows);
    },
    append: (added) => append(matrix, added, dimensions),
    remove: (vectorNo) => remove(matrix, vectorNo, dimensions),
    nearest: (questions) => nearest(matrix, questions),
    listOf(userNo, max) {
      if (countRows(rows, userNo) > max) return undefined;
      const list = listRows(rows, { userNo, purpose: 'rank', upTo: Infinity }, labelReader(codes));
      return Array.from(list, (row) => rows.vectorNos[row]!);
    },
  };
}

function append({ codes, rows, sides }: Matrix, added: readonly VectorCode[], dimensions: number): void {
  reserveRows(codes, rows.size + added.length);
  const bytes = new Uint8Array(codes.memory.buffer);
  const words = new Uint32Array(codes.memory.buffer);
  for (const vector of added) {
    assert(vector.code.length === dimensions / 8, `a code of ${vector.code.length} bytes for ${dimensions} dimensions`);
    const { row, label } = addRow(rows, vector);
    const address = addressOf(codes, row);
    bytes.set(vector.code, address.code);
    sides.count(vector.vectorNo, vector.code, 1);
    words[address.label / 4] = label;
  }
  if (rows.size >= MIN_TURNED) turnColumns(codes, rows.size);
}

function remove({ codes, rows, sides }: Matrix, vectorNo: number, dimensions: number): void {
  const row = findRow(rows, vectorNo);
  if (row === undefined) return;
  const words = new Uint32Array(codes.memory.buffer);
  const address = addressOf(codes, row);
  const at = address.label / 4;
  if ((words[at]! & FLAGS.removed) === FLAGS.removed) return;
  countRemoval(rows, words[at]!);
  words[at]! |= FLAGS.removed;
  sides.count(vectorNo, new Uint8Array(codes.memory.buffer, address.code, dimensions / 8), -1);
}

function nearest(matrix: Matrix, questions: readonly Question[]): number[][] {
  const answers = new Map<Question, number[]>();
  const listOf = rememberLists(matrix);
  let waiting: Question[] = [];
  for (const question of questions) {
    if (isListed(matrix, question)) answers.set(question, nearestAmong(matrix, listOf(question), question));
    else waiting.push(question);
  }
  while (waiting.length > 0) {
    const searches = beginSearches(matrix, waiting);
    scanColumns(matrix, searches);
    for (const search of searches) answers.set(search.question, nearestOf(matrix, search));
    waiting = waiting.slice(searches.length);
  }
  return questions.map((question) => answers.get(question)!);
}

/**
 * True if the rows that a question may find are listed and measured one by one, not scanned: if a scan would exclude
 * few of them or take longer, or if rows of newer memories than the question's `upTo` must be left out.
 */
function isListed({ rows }: Matrix, question: Question): boolean {
  const count = countRows(rows, question.userNo);
  const all = countRows(rows, undefined);
  return count <= candidatesWanted(rows, question) || TURNS_A_LISTED_ROW * count <= all || isCutOff(rows, question);
}

/**
 * Returns a function that lists the rows that a question may find, ascending; questions about the same rows share a
 * list. It is valid until rows are added or removed.
 */
function rememberLists({ codes, rows }: Matrix): (question: Question) => Uint32Array {
  const lists = new Map<string, Uint32Array>();
  return (question) => {
    const key = `${question.purpose} ${question.userNo} ${question.upTo}`;
    let list = lists.get(key);
    if (list === undefined) lists.set(key, (list = listRows(rows, question, labelReader(codes))));
    return list;
  };
}
