import type { Store } from '../open-store.ts';
import { textRewrites } from './rewrites.ts';
import { allVarints } from './structure.ts';

/** How many tokens each row of the word index has, which BM25 asks of every row it scores. 4 bytes a row, taken over from the file. */
export interface RowLengths {
  /** Takes over what was committed since, and gives the lengths by number of row. Call on a snapshot. */
  now(): Uint32Array;
  /** One slice of it. Call on a snapshot. */
  takeOver(): 'more' | 'done';
}

/** Rows that are read between two turns of the event loop: some 2 ms. */
const READ_AT_ONCE = 2_000;

export function openRowLengths(store: Store): RowLengths {
  let lengths = new Uint32Array(1_024);
  let upTo = 0;
  let rewriteNo: number | undefined;

  function put(seq: number, columns: Uint8Array | undefined): void {
    if (seq >= lengths.length) {
      const grown = new Uint32Array(2 ** Math.ceil(Math.log2(seq + 1)));
      grown.set(lengths);
      lengths = grown;
    }
    let length = 0;
    for (const tokens of columns === undefined ? [] : allVarints(columns)) length += tokens;
    lengths[seq] = length;
  }

  function takeOver(): 'more' | 'done' {
    rewriteNo ??= textRewrites.last(store);
    const { changed, last } = textRewrites.readAfter(store, rewriteNo);
    rewriteNo = last;
    if (changed === 'all') upTo = 0;
    else {
      const one = store.prepare('SELECT sz FROM memory_text_docsize WHERE id = ?').pluck();
      for (const seq of new Set(changed)) if (seq <= upTo) put(seq, one.get(seq) as Buffer | undefined);
    }
    const rows = store
      .prepare('SELECT id, sz FROM memory_text_docsize WHERE id > ? ORDER BY id LIMIT ?')
      .raw()
      .all(upTo, READ_AT_ONCE) as [number, Buffer][];
    for (const [seq, columns] of rows) put(seq, columns);
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
