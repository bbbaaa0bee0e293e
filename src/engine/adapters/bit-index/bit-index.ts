import { setImmediate as nextTurn } from 'node:timers/promises';
import { assert } from '../../errors.ts';
import type { IndexSearch, VectorIndex } from '../../ports.ts';
import type { Store } from '../../store/open-store.ts';
import { clearCodes, deleteCodes, insertCodes, lastCode, readCodes, vectorRemovals } from '../../store/vector-codes.ts';
import { assertValidVector, signBits } from '../../store/vector-encoding.ts';
import type { VectorSpace } from '../../store/vectors.ts';
import { createCodeMatrix, type CodeMatrix, type Question } from './code-matrix.ts';
import { createIndexMemory, type IndexMemory } from './index-memory.ts';

const K_MOST = 4_096;
/** Rows that are read between two turns of the event loop: some 2 ms. */
const LOADED_AT_ONCE = 1_000;
/** Share of removed rows at which all are read again, and how many there are at least. */
const REMOVED_SHARE = 1 / 4;
const REMOVED_LEAST = 10_000;

/** What a thread knows of the codes that the file holds. */
interface Known {
  readonly matrix: CodeMatrix;
  /** The last vector, of whatever model, and the last removal that were taken over. */
  vectorNo: number;
  removalNo: number;
}

/**
 * An exact scan of sign bits in memory. The file holds them (`store/vector-codes.ts`), and each process takes over what others committed before it
 * answers: new ones by their numbers, which only rise, and removed ones from a log. So an answer fits the snapshot that it is asked on,
 * there is nothing to build or to repair, and a kill leaves nothing behind.
 * @param indexMemory what all indexes of a thread may hold
 */
export function openBitIndex(
  store: Store,
  space: VectorSpace,
  indexMemory: IndexMemory = createIndexMemory(),
): VectorIndex {
  const { modelNo, dimensions } = space;
  let known: Known | undefined;
  let loading: Promise<void> | undefined;
  const holder = { drop: () => (known = undefined) };

  const index: VectorIndex = {
    add(vectors) {
      for (const { embedding } of vectors) assertLength(embedding, dimensions);
      insertCodes(store, space, () =>
        vectors.map(({ embedding, ...vector }) => ({ ...vector, code: signBits(embedding) })),
      );
    },

    remove: (vectorNos) => deleteCodes(store, vectorNos),
    clear: () => clearCodes(store, modelNo),
    close: drop,

    load() {
      if (known !== undefined && known.matrix.removed > REMOVED_LEAST + REMOVED_SHARE * known.matrix.count) drop();
      loading ??= loadInSlices().finally(() => (loading = undefined));
      return loading;
    },

    search: (search) => index.searchAll([search])[0]!,

    searchAll(searches) {
      const questions = searches.map((search) => questionOf(search, dimensions));
      return onSnapshot((matrix) => matrix.nearest(questions));
    },

    vectorsOf: (userNo, most) => onSnapshot((matrix) => matrix.listOf(userNo, most)),
  };
  return index;

  function onSnapshot<T>(work: (matrix: CodeMatrix) => T): T {
    // What a transaction wrote may still be taken back, and the index would not notice.
    assert(!store.isWriting, 'a search of the vector index inside a write');
    return store.read(() => {
      while (takeOver() === 'more');
      return work(known!.matrix);
    });
  }

  async function loadInSlices(): Promise<void> {
    while (store.db.open && store.read(takeOver) === 'more') await nextTurn();
  }

  /** One slice of what was committed since. Call on a snapshot. */
  function takeOver(): 'more' | 'done' {
    known ??= { matrix: createCodeMatrix(dimensions), vectorNo: 0, removalNo: vectorRemovals.last(store) };
    const removals = vectorRemovals.readAfter(store, known.removalNo);
    if (removals.changed === 'all') {
      drop();
      return 'more';
    }
    for (const vectorNo of removals.changed) known.matrix.remove(vectorNo);
    known.removalNo = removals.last;
    const last = lastCode(store, space);
    if (last > known.vectorNo) {
      const { codes, upTo } = readCodes(store, space, { after: known.vectorNo, limit: LOADED_AT_ONCE });
      known.matrix.append(codes);
      known.vectorNo = Math.min(last, upTo);
    }
    indexMemory.use(holder, known.matrix.bytes);
    return known.vectorNo < last ? 'more' : 'done';
  }

  function drop(): void {
    indexMemory.release(holder);
    known = undefined;
  }
}

function questionOf({ embedding, userNo, purpose, upTo = Infinity, k }: IndexSearch, dimensions: number): Question {
  assertValidVector(embedding, dimensions);
  assert(Number.isInteger(k) && k >= 1 && k <= K_MOST, `k = ${k} is not in 1..${K_MOST}`);
  return { embedding, userNo, purpose, upTo, k };
}

function assertLength(embedding: Float32Array, dimensions: number): void {
  assert(embedding.length === dimensions, `a vector of ${embedding.length} for an index of ${dimensions} dimensions`);
}
