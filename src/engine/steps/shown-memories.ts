/** Memories that a language model was shown: the texts that it read, and which of them still stand when it answers. */

import type { Statement } from '../reasoning/statement.ts';
import { compileFilter } from '../store/filter.ts';
import { readMemoryRows, type MemoryRow } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { listPassingOf } from '../store/passing-memories.ts';
import { textOfMemory } from './text-of-memory.ts';

/** Makes what a language model reads of a memory: title and content, and the time of the event. */
export function statementOf(row: MemoryRow): Statement {
  return { text: textOfMemory(row), saidAt: row.event_time };
}

/**
 * Returns the numbers of the shown memories that have the same text as then, and were neither erased nor hidden since.
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
