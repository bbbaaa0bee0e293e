import type { Store } from '../open-store.ts';
import { textRewrites } from './rewrites.ts';
import { allVarints } from './structure.ts';

/**
 * Copy in memory of the number of terms of each row of the word index, which BM25 needs for every row it scores: 4
 * bytes for each row.
 */
export interface RowLengths {
  /**
   * Takes over all that was committed since the last call, and returns the lengths by row number, 0 where there is no
   * row. Call on a snapshot. The next call may change the array, or return another.
   */
  now(): Uint32Array;
  /** Takes over one slice of what was committed since the last call; 'more' if some is left. Call on a snapshot. */
  takeOver(): 'more' | 'done';
}

/** Rows that are read in one slice, between two turns of the event loop: some 2 ms. */
const READ_AT_ONCE = 2_000;

/** Makes an empty table of row lengths, which is filled from the file as it is used. */
export function openRowLengths(store: Store): RowLengths {
  let lengths = new Uint32Array(1_024);
  let upTo = 0;
  let rewriteNo: number | undefined;

  function put(memoryNo: number, columns: Uint8Array | undefined): void {
    if (memoryNo >= lengths.length) {
      const grown = new Uint32Array(2 ** Math.ceil(Math.log2(memoryNo + 1)));
      grown.set(lengths);
      lengths = grown;
    }
    let length = 0;
    for (const terms of columns === undefined ? [] : allVarints(columns)) length += terms;
    lengths[memoryNo] = length;
  }

  function takeOver(): 'more' | 'done' {
    rewriteNo ??= textRewrites.last(store);
    const { changed, last } = textRewrites.readAfter(store, rewriteNo);
    rewriteNo = last;
    if (changed === 'all') upTo = 0;
    else {
      const size = store.prepare('SELECT sz FROM memory_text_docsize WHERE id = ?').pluck();
      for (const memoryNo of new Set(changed))
        if (memoryNo <= upTo) put(memoryNo, size.get(memoryNo) as Buffer | undefined);
    }
    const rows = store
      .prepare('SELECT id, sz FROM memory_text_docsize WHERE id > ? ORDER BY id LIMIT ?')
      .raw()
      .all(upTo, READ_AT_ONCE) as [number, Buffer][];
    for (const [memoryNo, columns] of rows) put(memoryNo, columns);
    upTo = rows.at(-1)?.[0] ?? upTo;
    return rows.length < READ_AT_ONCE ? 'done' : 'more';
  }

  return {
    takeOver,
    now() {
      while (takeOver() === 'more');
      return lengths;
    },
  };
}
