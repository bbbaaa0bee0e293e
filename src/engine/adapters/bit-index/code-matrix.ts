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
 * The sign bits of one model's vectors in memory, in the order of their numbers: 200 bytes a vector of 768 dimensions and 20 for what
 * belongs to it. A search takes two passes: first the dimensions that weigh most in the question, of all rows; then what the whole
 * question, not as bits, says about the nearest of those. No pass knows chance or time, so the same rows give the same answer; ties go to
 * the older vector.
 */
export type CodeMatrix = HeldVectors<VectorCode>;

/** A smaller index has columns only once it is asked for more than a list. */
const TURNED_LEAST = 8_192;
/** Rows that the first pass measures in the time that it takes to go to one of a user's and measure that. */
const TURNS_A_LISTED_ROW = 32;

/**
 * Makes an empty matrix for vectors of this many dimensions.
 * @throws EngineError `internal` for dimensions that make no whole bytes, or too many; `invalid` for kernels that do not run here
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
    listOf(userNo, most) {
      if (countRows(rows, userNo) > most) return undefined;
      const list = listRows(rows, { userNo, purpose: 'rank', upTo: Infinity }, labelReader(codes));
      return Array.from(list, (row) => rows.vectorNos[row]!);
    },
  };
}

function append({ codes, rows, sides }: Matrix, added: readonly VectorCode[], dimensions: number): void {
  reserveRows(codes, rows.size + added.length);
  const bytes = new Uint8Array(codes.memory.buffer);
  const words = new Uint32Array(codes.memory.buffer);
  for (const one of added) {
    assert(one.code.length === dimensions / 8, `a code of ${one.code.length} bytes for ${dimensions} dimensions`);
    const { row, label } = addRow(rows, one);
    const address = addressOf(codes, row);
    bytes.set(one.code, address.code);
    sides.count(one.vectorNo, one.code, 1);
    words[address.label / 4] = label;
  }
  if (rows.size >= TURNED_LEAST) turnColumns(codes, rows.size);
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
  const found = new Map<Question, number[]>();
  const listOf = rememberLists(matrix);
  let waiting: Question[] = [];
  for (const question of questions) {
    if (isListed(matrix, question)) found.set(question, nearestAmong(matrix, listOf(question), question));
    else waiting.push(question);
  }
  while (waiting.length > 0) {
    const searches = beginSearches(matrix, waiting);
    scanColumns(matrix, searches);
    for (const search of searches) found.set(search.question, nearestOf(matrix, search));
    waiting = waiting.slice(searches.length);
  }
  return questions.map((question) => found.get(question)!);
}

/** Whether the first pass would leave out little, or take longer than to go through the rows of the question's user one by one. */
function isListed({ rows }: Matrix, question: Question): boolean {
  const count = countRows(rows, question.userNo);
  const all = countRows(rows, undefined);
  return count <= candidatesWanted(rows, question) || TURNS_A_LISTED_ROW * count <= all || isCutOff(rows, question);
}

/** Questions about the same user share a list. */
function rememberLists({ codes, rows }: Matrix): (question: Question) => Uint32Array {
  const lists = new Map<string, Uint32Array>();
  return (question) => {
    const key = `${question.purpose} ${question.userNo} ${question.upTo}`;
    let list = lists.get(key);
    if (list === undefined) lists.set(key, (list = listRows(rows, question, labelReader(codes))));
    return list;
  };
}
