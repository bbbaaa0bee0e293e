import type { Statement } from '../reasoning/statement.ts';
import { compileFilter } from '../store/filter.ts';
import { readMemoryRows, type MemoryRow } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { listPassingOf } from '../store/search.ts';

/** Memories that a language model was shown: what it read of them, and what of that still stands when its answer has come. */

export function statementOf(row: MemoryRow): Statement {
  return { text: textOf(row), saidAt: row.event_time };
}

function textOf({ title, content }: Pick<MemoryRow, 'title' | 'content'>): string {
  return title === '' ? content : `${title}\n${content}`;
}

/** Numbers of those that say what they said, and were neither erased nor hidden since. */
export function unchangedOf(store: Store, shown: readonly MemoryRow[], now: number): ReadonlySet<number> {
  const seqs = shown.map(({ seq }) => seq);
  const passing = new Set(listPassingOf(store, compileFilter({}, now), seqs));
  const texts = new Map(readMemoryRows(store, seqs).map((row) => [row.seq, textOf(row)]));
  return new Set(
    shown.filter((row) => passing.has(row.seq) && texts.get(row.seq) === textOf(row)).map(({ seq }) => seq),
  );
}
