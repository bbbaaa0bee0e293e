/** Memories whose texts a language model reads, and which of them are unchanged when it answers. */

import type { Statement } from '../reasoning/statement.ts';
import { compileFilter } from '../store/filter.ts';
import { readMemoryRows, type MemoryRow } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { listPassingOf } from '../store/passing-memories.ts';
import { textOfMemory } from './text-of-memory.ts';

/** Returns the part of a memory that a language model reads: title and content, and the time of the event. */
export function statementOf(row: MemoryRow): Statement {
  return { text: textOfMemory(row), saidAt: row.event_time };
}

/**
 * Returns the `memoryNo` of those memories that still have the text that the model read, and are active and valid now,
 * so that they were neither erased nor hidden since.
 */
export function unchangedOf(store: Store, shown: readonly MemoryRow[], now: number): ReadonlySet<number> {
  const memoryNos = shown.map(({ memoryNo }) => memoryNo);
  const passing = new Set(listPassingOf(store, compileFilter({}, now), memoryNos));
  const textsNow = new Map(readMemoryRows(store, memoryNos).map((row) => [row.memoryNo, textOfMemory(row)]));
  return new Set(
    shown
      .filter((row) => passing.has(row.memoryNo) && textsNow.get(row.memoryNo) === textOfMemory(row))
      .map(({ memoryNo }) => memoryNo),
  );
}
