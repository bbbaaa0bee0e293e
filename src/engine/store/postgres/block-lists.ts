/** Doclists of terms, put together from the blocks of the word index. */

import type { Doclist } from '../word-index/doclists.ts';
import { PARTITION_ROWS } from '../word-index/terms.ts';
import { BLOCK_ROWS, restartsOf } from './block-codec.ts';

const BLOCKS_OF_PARTITION = PARTITION_ROWS / BLOCK_ROWS;

/**
 * A row of `word_blocks`: the key of its term, the number of its block (of the first one, if several were joined), the
 * encoded rows, and the sizes of joined blocks, as `restartsOf` takes them.
 */
export type BlockRow = readonly [term: string, block: number, data: Uint8Array, parts: string];

/**
 * Concatenates the blocks of each term into one doclist for each partition that has some; returns the doclists by the
 * key of the term. All doclists of a term are slices of one buffer.
 */
export function joinBlocks(rows: readonly BlockRow[]): Map<string, Doclist[]> {
  const lists = new Map<string, Doclist[]>();
  for (const [term, unordered] of Map.groupBy(rows, ([name]) => name)) {
    const blocks = unordered.toSorted(([, a], [, b]) => a - b);
    const bytes = Buffer.concat(blocks.map(([, , data]) => data));
    let end = 0;
    const placed = blocks.map(([, block, data, parts]) => {
      const from = end;
      const restarts = restartsOf(parts).map((offset) => from + offset);
      return { partition: Math.floor(block / BLOCKS_OF_PARTITION), from, end: (end += data.length), restarts };
    });
    const ofTerm = [...Map.groupBy(placed, ({ partition }) => partition)].map(([partition, parts]): Doclist => {
      const restarts = parts.flatMap((part) => part.restarts);
      return { bytes, from: restarts[0]!, end: parts.at(-1)!.end, restarts, partition, isDeleted: undefined };
    });
    lists.set(term, ofTerm);
  }
  return lists;
}
