import { assert } from '../../errors.ts';
import { type ChangeLock, openChangeLock, type SharedReader } from '../../shared-memory.ts';
import type { VectorCode } from '../../store/vector-codes.ts';
import type { Answers, Change, FollowedVectors, Position, Question } from '../following-index/followed-vectors.ts';
import {
  beginSegment,
  codeAddress,
  numberReader,
  openCodes,
  reserveRows,
  showRows,
  turnColumns,
  wordReader,
} from './codes.ts';
import { countSides, isCounted, spreadsOf } from './dimensions.ts';
import { layoutOf, SEGMENT_ROWS } from './kernels.ts';
import { nearestAmong, nearestOf, scanColumns } from './passes.ts';
import {
  countRows,
  firstRowFrom,
  isCutOff,
  isRemoved,
  listRows,
  markRemoved,
  type RowTable,
  writeRow,
} from './rows.ts';
import { beginSearches, candidatesWanted, type Matrix } from './searches.ts';
import {
  bytesOfShared,
  emptyState,
  openStates,
  type SharedVectors,
  type State,
  type States,
} from './shared-vectors.ts';
import { openUsers } from './users.ts';

/**
 * The sign bits of one model's vectors in memory, one row for each vector, in the order of the vectors' numbers. A
 * vector of 768 dimensions takes 224 bytes: its bits twice, by row and by dimension, and 32 more for user, memory,
 * number and padding. A search for the vectors nearest to a query vector (the question) has two passes: first, the bits
 * of the dimensions that matter most are compared in all rows; then, for the nearest of these rows, the question's
 * components are compared with all bits. If only few rows may be found, the first pass compares their whole codes
 * instead. Neither pass depends on chance or time, so equal rows give an equal answer. Of equally near vectors the
 * older one comes first.
 *
 * Threads that share a matrix read it at any time. Only one of them at a time adds rows at the end, which does not
 * affect readers, or marks rows as removed. After a search, a reader checks whether removals have begun that its
 * snapshot does not have; if so, it searches again. A reader that accepts later removals searches again only if the
 * matrix was cleared.
 */
export type CodeMatrix = FollowedVectors<VectorCode>;

/** The matrix as one thread uses it: its state, rows and lock. */
interface Opened extends RowTable {
  readonly shared: SharedVectors;
  readonly states: States;
  readonly lock: ChangeLock;
}

/** The matrix as a search sees it, at one snapshot of the tenant's file. */
interface View extends Matrix {
  /** Number of the matrix's rows, from the first on, whose bits are also stored by dimension (as columns). */
  readonly turned: number;
}

/**
 * Number of rows from which the bits of new rows are also stored by dimension (as columns) at once. In a smaller
 * matrix, the first search that scans it makes the columns; from then on, new rows are stored in both ways at once,
 * too.
 */
const MIN_TURNED = 8_192;
/** How many times longer it takes to compare one row of a list than to scan one row in the first pass. */
const LISTED_ROW_COST = 32;

/**
 * Opens a matrix in shared memory for one thread.
 * @param reader number and mode of the thread among those that share the matrix; left out if no other thread uses it.
 *   Without it, the matrix has no method `clear`, which removes all rows in place; a new matrix is opened instead
 */
export function openCodeMatrix(shared: SharedVectors, reader?: SharedReader): CodeMatrix {
  const { space, maxReaders } = shared;
  const self = reader ?? { number: 0, acceptsLaterRemovals: false };
  assert(self.number >= 0 && self.number < maxReaders, `reader ${self.number} of ${maxReaders}`);
  const states = openStates(shared);
  const layout = layoutOf(space.dimensions, self.number, maxReaders);
  let used = 0;
  const noteUse = (end: number) => {
    if (end - layout.query <= used) return;
    states.noteUse(self.number, (used = end - layout.query));
  };
  const codes = openCodes(layout, shared.memory, noteUse);
  noteUse(layout.candidates);
  const opened: Opened = { shared, states, codes, users: openUsers(shared.users), lock: openChangeLock(shared, self) };
  const viewAt = rememberView(opened);
  return {
    get count() {
      const state = states.read();
      return state === undefined ? 0 : state.size - state.removed;
    },
    get removed() {
      return states.read()?.removed ?? 0;
    },
    get bytes() {
      return bytesOfShared(shared);
    },
    get position() {
      return states.read();
    },
    alone: opened.lock.alone,
    change: (change) => changeRows(opened, change),
    answer: (at, work) => answer(opened, self, viewAt, at, work),
    ...(reader && { clear: (removalNo: number) => clear(opened, removalNo) }),
  };
}

/** Applies committed changes: marks removed rows and adds new ones. The thread must hold the lock. */
function changeRows(opened: Opened, { removed, removalNo, added, vectorNo }: Change<VectorCode>): void {
  const { shared, states, codes, lock } = opened;
  const { dimensions } = shared.space;
  const known = states.read() ?? emptyState(dimensions, { removals: 0, clears: 0 });
  showRows(codes, known.size);
  reserveRows(codes, known.size + added.length);
  lock.change(() => {
    const state: State = { ...known, above: known.above.slice(), vectorNo, removalNo };
    if (removed.length > 0) {
      states.beginRemovals();
      state.removals = (state.removals + 1) | 0;
      for (const one of removed) remove(opened, state, one);
    }
    let last = known.size === 0 ? -1 : numberReader(codes, 'vectorNos')(known.size - 1);
    for (const vector of added) {
      assert(vector.vectorNo > last, 'vectors come in the order of their numbers');
      append(opened, state, vector);
      last = vector.vectorNo;
    }
    if (state.size >= MIN_TURNED || state.turned > 0) turnAll(opened, state);
    states.publish(state);
  });
}

function append(opened: Opened, state: State, vector: VectorCode): void {
  const { codes, shared } = opened;
  const { dimensions } = shared.space;
  const { vectorNo, memory, code } = vector;
  const row = state.size;
  assert(code.length === dimensions / 8, `a code of ${code.length} bytes for ${dimensions} dimensions`);
  if (row % SEGMENT_ROWS === 0) beginSegment(codes, row);
  writeRow(opened, row, vector);
  state.size += 1;
  state.highestMemory = Math.max(state.highestMemory, memory);
  if (!isCounted(vectorNo)) return;
  countSides(state.above, code, 1);
  state.counted += 1;
}

function remove(opened: Opened, state: State, vectorNo: number): void {
  const { codes } = opened;
  const row = firstRowFrom(codes, state.size, vectorNo);
  if (row === state.size || numberReader(codes, 'vectorNos')(row) !== vectorNo || !markRemoved(opened, row)) return;
  state.removed += 1;
  if (isCounted(vectorNo)) discount(opened, state, row);
}

/** Subtracts a row, which is removed or later than the snapshot, from the counts of positive signs by dimension. */
function discount({ codes }: RowTable, state: State, row: number): void {
  const at = codeAddress(codes.layout, row);
  countSides(state.above, codes.views().bytes.subarray(at, at + state.above.length / 8), -1);
  state.counted -= 1;
}

function turnAll({ codes }: Opened, state: State): void {
  turnColumns(codes, state.turned, state.size);
  state.turned = state.size;
}

/** Removes all rows. Their memory stays reserved for later rows. The thread must hold the lock. */
function clear({ shared, states, users, lock }: Opened, removalNo: number): void {
  const known = states.read();
  lock.change(() => {
    states.beginClear();
    users.clear();
    const [removals, clears] = [((known?.removals ?? 0) + 1) | 0, ((known?.clears ?? 0) + 1) | 0];
    states.publish({ ...emptyState(shared.space.dimensions, { removals, clears }), removalNo });
  });
}

/**
 * Calls `work` with the rows at a position in the file. Returns undefined if the matrix has not been brought to that
 * position, or if another thread removed rows meanwhile (for a reader that accepts later removals: only if it removed
 * all). The caller then compares the matrix's position with the file's again, and retries.
 */
function answer<R>(
  opened: Opened,
  { acceptsLaterRemovals }: SharedReader,
  viewAt: (state: State, at: Position) => View,
  at: Position,
  work: (vectors: Answers) => R,
): { readonly value: R } | undefined {
  const { states, lock } = opened;
  lock.requireKept();
  const kind = acceptsLaterRemovals ? 'clears' : 'removals';
  const state = states.read()!;
  // Another thread may have changed the matrix since the caller compared the positions.
  const isLater = state.removalNo > at.removalNo && !acceptsLaterRemovals;
  if (isLater || state.vectorNo < at.vectorNo) return undefined;
  const view = viewAt(state, at);
  const value = work({
    nearest: (questions) => nearest(opened, view, questions),
    listOf(userNo, max) {
      if (countRows(view.rows, userNo) > max) return undefined;
      const list = listRows(view.rows, { userNo, purpose: 'rank', upTo: Infinity });
      return Array.from(list, numberReader(opened.codes, 'vectorNos'));
    },
  });
  if (!states.hasBegun(kind, state)) return { value };
  // The thread that removes rows holds the lock until it has published its removals: this call waits for that.
  lock.alone(() => {});
  return undefined;
}

/**
 * Returns a function that makes the view of a state at a position. It caches the last view, for the same state and
 * position.
 */
function rememberView(opened: Opened): (state: State, at: Position) => View {
  let last: { readonly state: State; readonly vectorNo: number; readonly view: View } | undefined;
  return (state, { vectorNo }) => {
    if (last?.state !== state || last.vectorNo !== vectorNo)
      last = { state, vectorNo, view: makeView(opened, state, vectorNo) };
    return last.view;
  };
}

/**
 * Makes a view of the rows of vectors up to a number, as if no later vectors had been added. Later rows belong to later
 * commits; their effect on the counts of the state is subtracted.
 */
function makeView({ codes, users }: Opened, state: State, vectorNo: number): View {
  showRows(codes, state.size);
  const size = state.vectorNo > vectorNo ? firstRowFrom(codes, state.size, vectorNo + 1) : state.size;
  const present = size === state.size ? state : { ...state, above: state.above.slice() };
  const labelOf = wordReader(codes, 'labels');
  const vectorNoOf = numberReader(codes, 'vectorNos');
  for (let row = size; row < state.size; row += 1) {
    if (isRemoved(labelOf(row))) present.removed -= 1;
    else if (isCounted(vectorNoOf(row))) discount({ codes, users }, present, row);
  }
  return {
    codes,
    turned: state.turned,
    spreads: spreadsOf(present.above, present.counted),
    rows: {
      codes,
      users,
      size,
      removed: present.removed,
      highestMemory() {
        if (size === state.size) return state.highestMemory;
        const memoryOf = numberReader(codes, 'memories');
        let highest = 0;
        for (let row = 0; row < size; row += 1) highest = Math.max(highest, memoryOf(row));
        return highest;
      },
    },
  };
}

function nearest(opened: Opened, view: View, questions: readonly Question[]): number[][] {
  const answers = new Map<Question, number[]>();
  const listOf = rememberLists(view);
  let waiting: Question[] = [];
  for (const question of questions) {
    if (isListed(view, question)) answers.set(question, nearestAmong(view, listOf(question), question));
    else waiting.push(question);
  }
  if (waiting.length > 0 && view.turned < view.rows.size) makeColumns(opened);
  while (waiting.length > 0) {
    const searches = beginSearches(view, waiting);
    scanColumns(view, searches);
    for (const search of searches) answers.set(search.question, nearestOf(view, search));
    waiting = waiting.slice(searches.length);
  }
  return questions.map((question) => answers.get(question)!);
}

/** Stores the bits of all rows by dimension (as columns), unless another thread has done so. */
function makeColumns(opened: Opened): void {
  const { states, codes, lock } = opened;
  lock.alone(() => {
    const known = states.read()!;
    if (known.turned === known.size) return;
    showRows(codes, known.size);
    lock.change(() => {
      const state = { ...known };
      turnAll(opened, state);
      states.publish(state);
    });
  });
}

/**
 * Tells whether a question's rows are listed and compared one by one instead of scanning all rows. That is so if there
 * are few of them, so that a scan would drop hardly any or take longer, or if memories newer than the question's `upTo`
 * must be left out.
 */
function isListed({ rows }: Matrix, question: Question): boolean {
  const count = countRows(rows, question.userNo);
  const all = countRows(rows, undefined);
  return count <= candidatesWanted(rows, question) || LISTED_ROW_COST * count <= all || isCutOff(rows, question);
}

/**
 * Returns a function that lists the rows that a question may find, ascending. It caches the lists by user, purpose and
 * `upTo`. The function is valid until rows are added or removed.
 */
function rememberLists({ rows }: Matrix): (question: Question) => Uint32Array {
  const lists = new Map<string, Uint32Array>();
  return (question) => {
    const key = `${question.purpose} ${question.userNo} ${question.upTo}`;
    let list = lists.get(key);
    if (list === undefined) lists.set(key, (list = listRows(rows, question)));
    return list;
  };
}
