/** Tells what changed between two times, the start and the end of a window, with the memories as they were. */

import type { ChangedEntry, ContradictedEntry, DiffEntry, DiffLists, Memory, MemoryDiff } from '../types.ts';
import { countErased } from './audit-chain.ts';
import {
  type DiffRequest,
  type Found,
  type FoundChange,
  type FoundFade,
  type FoundLists,
  type Pair,
  scanChanges,
} from './diff-scans.ts';
import { compileFilter } from './filter.ts';
import { readMemories } from './memories.ts';
import { withinBytes } from './text-sizes.ts';
import type { Store } from './open-store.ts';
import { listPassingOf } from './passing-memories.ts';
import { createPastReader } from './past-memories.ts';
import { hasWorkEnded } from './work-budget.ts';

/**
 * Greatest number of bytes of texts, values and metadata that one list of the result reads, and of UTF-16 code units
 * that `changed` returns. Eight such lists stay well within a reply of 8 MiB.
 */
const LIST_BYTES = 512 * 1024;

/**
 * Compares what the memories of a tenant said at two times. Each list holds at most `limit` entries, and fewer if their
 * texts are long, while `counts` counts all entries. If the work budget is used up, `degraded` is true and entries may
 * be missing. Call inside a read, so that everything is on one snapshot.
 */
export function readDiff(store: Store, request: DiffRequest): MemoryDiff {
  const { from, to, axis } = request;
  const found = scanChanges(store, request);
  const reader = createReader(store, request);
  const lists: DiffLists = {
    added: reader.entriesOf(found.added.list()),
    changed: reader.changedOf(found.changed.list()),
    superseded: reader.supersededOf(found.superseded.list()),
    contradicted: reader.contradictedOf(found.contradicted.list()),
    ended: reader.entriesOf(found.ended.list()),
    archived: reader.entriesOf(found.archived.list()),
    restored: reader.entriesOf(found.restored.list()),
    faded: reader.fadedOf(found.faded.list()),
  };
  const isWhole = Object.values(request.filter).every((value) => value === undefined) && request.topicIds === null;
  return {
    from,
    to,
    axis,
    ...lists,
    counts: countsOf(found),
    erased: isWhole && axis === 'recorded' ? countErased(store, { from, to }) : null,
    degraded: hasWorkEnded(),
  };
}

function countsOf(found: FoundLists): MemoryDiff['counts'] {
  const { added, changed, superseded, contradicted, ended, archived, restored, faded } = found;
  return {
    added: added.count,
    changed: changed.count,
    superseded: superseded.count,
    contradicted: contradicted.count,
    ended: ended.count,
    archived: archived.count,
    restored: restored.count,
    faded: faded.count,
  };
}

/**
 * Finds for each memory the memory that directly superseded it, by number; the one with the highest number if there are
 * several.
 */
function successorsOf(store: Store, memoryNos: readonly number[]): Map<number, number> {
  const rows = store
    .prepare(
      `SELECT e.dst AS older, max(e.src) AS newer FROM json_each(?) AS wanted
       CROSS JOIN edges e ON e.dst = wanted.value AND e.type = 'supersedes' GROUP BY e.dst`,
    )
    .all(JSON.stringify(memoryNos)) as { older: number; newer: number }[];
  return new Map(rows.map(({ older, newer }) => [older, newer]));
}

/**
 * Returns the first entries whose texts, before and after the change together, have at most 512 Ki UTF-16 code units;
 * at least one entry.
 */
function withinLength<Entry extends { readonly memory: Memory; readonly before: Memory }>(
  entries: readonly Entry[],
): Entry[] {
  let left = LIST_BYTES;
  const beyond = entries.findIndex(({ memory, before }, place) => {
    left -= memory.content.length + before.content.length;
    return place > 0 && left < 0;
  });
  return entries.slice(0, beyond === -1 ? entries.length : beyond);
}

/**
 * Makes the functions that read the memories of the lists. They read memories as they were at the second time (on the
 * axis `valid`, as they are now), and the changed ones also as they were at the first. A version that lacks one of the
 * tags `withinTags` is left out, since the caller was not allowed to see it.
 */
function createReader(store: Store, { from, to, axis, now, filter: { withinTags = [] } }: DiffRequest) {
  const withinBounds = (memories: Map<number, Memory>): Map<number, Memory> =>
    new Map([...memories].filter(([, { tags }]) => withinTags.every((tag) => tags.includes(tag))));
  const pastAt = (at: number) => {
    const past = createPastReader(store, at);
    return (memoryNos: readonly number[]) => past.read(past.within(memoryNos, LIST_BYTES), now);
  };
  const readPresent = (memoryNos: readonly number[]) =>
    readMemories(store, withinBytes(store, memoryNos, LIST_BYTES), now);
  const [readAtStart, readAtEnd] = [pastAt(from), axis === 'recorded' ? pastAt(to) : readPresent];
  /** Reads the first of these memories, as many as have texts, values and metadata of `LIST_BYTES` together. */
  const atEnd = (memoryNos: readonly number[]) => withinBounds(readAtEnd([...new Set(memoryNos)]));
  /** Finds the memories that superseded these, without those that the caller may not see at present. */
  const reachedSuccessors = (memoryNos: readonly number[]): Map<number, number> => {
    const successors = successorsOf(store, memoryNos);
    if (withinTags.length === 0) return successors;
    const bounds = compileFilter({ withinTags }, now, { includeHidden: true });
    const reached = new Set(listPassingOf(store, bounds, [...successors.values()]));
    return new Map([...successors].filter(([, newer]) => reached.has(newer)));
  };
  return {
    entriesOf(list: readonly Found[]): DiffEntry[] {
      const memories = atEnd(list.map(({ memoryNo }) => memoryNo));
      return list.flatMap(({ memoryNo, at }) => {
        const memory = memories.get(memoryNo);
        return memory === undefined ? [] : [{ memory, at }];
      });
    },

    changedOf(list: readonly FoundChange[]): ChangedEntry[] {
      const memories = atEnd(list.map(({ memoryNo }) => memoryNo));
      const earlier = withinBounds(readAtStart([...memories.keys()]));
      const entries = list.flatMap(({ memoryNo, at, fields }) => {
        const [memory, before] = [memories.get(memoryNo), earlier.get(memoryNo)];
        return memory === undefined || before === undefined ? [] : [{ memory, before, fields, at }];
      });
      return withinLength(entries);
    },

    supersededOf(list: readonly Found[]) {
      const memories = atEnd(list.map(({ memoryNo }) => memoryNo));
      const successors = reachedSuccessors([...memories.keys()]);
      const later = atEnd([...successors.values()]);
      return list.flatMap(({ memoryNo, at }) => {
        const memory = memories.get(memoryNo);
        const by = later.get(successors.get(memoryNo) ?? 0) ?? null;
        return memory === undefined ? [] : [{ memory, by, at }];
      });
    },

    contradictedOf(pairs: readonly Pair[]): ContradictedEntry[] {
      const memories = atEnd(pairs.flatMap(({ a, b }) => [a, b]));
      return pairs.flatMap(({ a, b, winner, automatic, at }) => {
        const [one, other] = [memories.get(a), memories.get(b)];
        if (one === undefined || other === undefined) return [];
        return [{ a: one, b: other, winner: winner === null ? null : (winner === a ? one : other).id, automatic, at }];
      });
    },

    fadedOf(list: readonly FoundFade[]) {
      const memories = atEnd(list.map(({ memoryNo }) => memoryNo));
      return list.flatMap(({ memoryNo, ...values }) => {
        const memory = memories.get(memoryNo);
        return memory === undefined ? [] : [{ memory, ...values }];
      });
    },
  };
}
