/**
 * Finds what changed between two times, the start and the end of a window. One pass over the memories in scope finds
 * those that were added, ended or faded (lost salience); revisions and contradictions have much smaller tables of their
 * own.
 */

import { DAY_MS } from '../dynamics.ts';
import type {
  ChangedEntry,
  ContradictedEntry,
  DiffEntry,
  DiffLists,
  DiffOptions,
  Memory,
  MemoryDiff,
} from '../types.ts';
import { countErased } from './audit-chain.ts';
import { type CompiledFilter, compileFilter } from './filter.ts';
import { readMemories } from './memories.ts';
import { withinBytes } from './text-sizes.ts';
import type { Store } from './open-store.ts';
import { listPassingOf } from './passing-memories.ts';
import { createPastReader } from './past-memories.ts';
import { hasWorkEnded, readUntilWorkEnds, ROW_BYTES, spendWork } from './work-budget.ts';

/**
 * Greatest number of bytes of text that one list of the result reads. Eight such lists stay well within a reply of 8
 * MiB.
 */
const LIST_BYTES = 512 * 1024;

/** A request to compare two times, with the memories that its topic selects. */
export interface DiffRequest extends DiffOptions {
  /** Ids of the memories that a query for the topic found; null if the request has no topic. */
  readonly topicIds: readonly string[] | null;
  readonly now: number;
}

/** A changed memory: its number, and the time of its change, Unix ms. */
interface Found {
  readonly memoryNo: number;
  readonly at: number;
}

/**
 * The lists of a difference with memories by number, each sorted by time, earliest first; `faded` by falling salience
 * at the start of the window.
 */
type FoundLists = Readonly<Record<Exclude<keyof DiffLists, 'contradicted' | 'faded' | 'changed'>, Found[]>> & {
  readonly changed: (Found & { readonly fields: readonly string[] })[];
  readonly faded: { readonly memoryNo: number; readonly salienceFrom: number; readonly salienceTo: number }[];
};

/**
 * Compares what the memories of a tenant said at two times. Each list holds at most `limit` entries, and fewer if their
 * texts are long, while `counts` counts all entries. If the work budget is used up, `degraded` is true and entries may
 * be missing. Call inside a read, so that everything is on one snapshot.
 */
export function readDiff(store: Store, request: DiffRequest): MemoryDiff {
  const { from, to, axis, limit } = request;
  const scope = scopeOf(request);
  const found: FoundLists = {
    added: [],
    changed: [],
    superseded: [],
    ended: [],
    archived: [],
    restored: [],
    faded: [],
  };
  scanMemories(store, request, scope, found);
  if (axis === 'recorded') scanRevisions(store, request, scope, found);
  const pairs = axis === 'recorded' ? contradictionsIn(store, request, scope) : [];
  const reader = createReader(store, request);
  const entries = (list: readonly Found[]): DiffEntry[] => reader.entriesOf(list.slice(0, limit));
  const lists: DiffLists = {
    added: entries(found.added),
    changed: reader.changedOf(found.changed.slice(0, limit)),
    superseded: reader.supersededOf(found.superseded.slice(0, limit)),
    contradicted: reader.contradictedOf(pairs.slice(0, limit)),
    ended: entries(found.ended),
    archived: entries(found.archived),
    restored: entries(found.restored),
    faded: reader.fadedOf(found.faded.slice(0, limit)),
  };
  const counts = { ...countsOf(found), contradicted: pairs.length };
  const isWhole = Object.values(request.filter).every((value) => value === undefined) && request.topicIds === null;
  return {
    from,
    to,
    axis,
    ...lists,
    counts,
    erased: isWhole && axis === 'recorded' ? countErased(store, { from, to }) : null,
    degraded: hasWorkEnded(),
  };
}

function countsOf(found: FoundLists): Omit<MemoryDiff['counts'], 'contradicted'> {
  const { added, changed, superseded, ended, archived, restored, faded } = found;
  return {
    added: added.length,
    changed: changed.length,
    superseded: superseded.length,
    ended: ended.length,
    archived: archived.length,
    restored: restored.length,
    faded: faded.length,
  };
}

/**
 * Compiles the condition that a memory is in scope, over the aliases `m` and `d`: it passes the filter and the topic,
 * has not expired and is no part of a document.
 */
function scopeOf({ filter, topicIds, now }: DiffRequest): CompiledFilter {
  const compiled = compileFilter(filter, now, { includeHidden: true });
  const isTopical = topicIds === null ? '' : ' AND m.id IN (SELECT value FROM json_each(?))';
  return {
    ...compiled,
    sql: `d.generation_no IS NULL AND (m.expires_at IS NULL OR m.expires_at > ?)${isTopical} AND ${compiled.sql}`,
    parameters: [now, ...(topicIds === null ? [] : [JSON.stringify(topicIds)]), ...compiled.parameters],
  };
}

interface ScannedRow {
  readonly memoryNo: number;
  readonly createdAt: number;
  readonly startsAt: number;
  readonly validTo: number | null;
  readonly status: string;
  readonly salience: number;
  readonly salienceAt: number;
  readonly lambda: number;
}

/**
 * Finds the memories that were added, ended or faded (lost salience) between the two times, and on the axis `valid`
 * also the superseded ones, in one pass over the memories in scope. It stops when the work budget is used up.
 */
function scanMemories(store: Store, request: DiffRequest, scope: CompiledFilter, found: FoundLists): void {
  const { from, to, axis, fadedBelow, filter } = request;
  const source = filter.userIds?.length === 1 ? 'memories m INDEXED BY memories_by_time' : 'memories m';
  const began = axis === 'recorded' ? 'm.created_at' : 'coalesce(m.valid_from, m.event_time)';
  const statement = store.prepare(
    `SELECT m.seq AS memoryNo, m.created_at AS createdAt, coalesce(m.valid_from, m.event_time) AS startsAt,
       m.valid_to AS validTo, d.status, d.salience, d.salience_at AS salienceAt, d.decay_lambda AS lambda
     FROM ${source} CROSS JOIN memory_dynamics d ON d.seq = m.seq
     WHERE ((${began} > ? AND ${began} <= ?) OR (m.valid_to > ? AND m.valid_to <= ?)
       OR (d.salience >= ? AND d.salience_at <= ?
         AND d.salience * exp(-d.decay_lambda * (? - d.salience_at) / ${DAY_MS}.0) < ?))
       AND ${scope.sql}`,
  );
  const values = [from, to, from, to, fadedBelow, from, to, fadedBelow, ...scope.parameters];
  const { rows } = readUntilWorkEnds(() => statement.iterate(...values) as IterableIterator<ScannedRow>);
  spendWork(rows.length * ROW_BYTES);
  const isIn = (at: number | null) => at !== null && at > from && at <= to;
  for (const row of rows) {
    const { memoryNo, validTo, status } = row;
    const beganAt = axis === 'recorded' ? row.createdAt : row.startsAt;
    if (isIn(beganAt)) found.added.push({ memoryNo, at: beganAt });
    if (isIn(validTo) && status === 'superseded' && axis === 'valid') found.superseded.push({ memoryNo, at: validTo! });
    if (isIn(validTo) && status !== 'superseded') found.ended.push({ memoryNo, at: validTo! });
    const { salience, salienceAt, lambda } = row;
    const at = (time: number) => salience * Math.exp((-lambda * Math.max(0, time - salienceAt)) / DAY_MS);
    const [salienceFrom, salienceTo] = [at(from), at(to)];
    // With a later anchor it was added or reinforced in the window.
    if (status === 'active' && salienceAt <= from && salienceFrom >= fadedBelow && salienceTo < fadedBelow)
      found.faded.push({ memoryNo, salienceFrom, salienceTo });
  }
  for (const list of [found.added, found.ended, found.superseded]) list.sort(byTime);
  found.faded.sort((one, other) => other.salienceFrom - one.salienceFrom || one.memoryNo - other.memoryNo);
}

const byTime = (one: Found, other: Found) => one.at - other.at || one.memoryNo - other.memoryNo;

interface RevisionRow {
  readonly memoryNo: number;
  readonly at: number;
  readonly fields: string;
  readonly byLink: number;
  readonly before: string;
  readonly after: string;
  readonly isNew: number;
}

/**
 * Finds the memories that were changed between the two times, without those that were added in between, and the
 * memories with another status at the second time than at the first. It stops when the work budget is used up.
 */
function scanRevisions(store: Store, { from, to }: DiffRequest, scope: CompiledFilter, found: FoundLists): void {
  const statement = store.prepare(
    `SELECT r.memory AS memoryNo, r.replaced_at AS at, r.fields, r.by_link AS byLink, r.status AS before,
       coalesce((SELECT n.status FROM memory_revisions n WHERE n.memory = r.memory AND n.version = r.version + 1),
         d.status) AS after, m.created_at > ? AS isNew
     FROM memory_revisions r CROSS JOIN memories m ON m.seq = r.memory CROSS JOIN memory_dynamics d ON d.seq = m.seq
     WHERE r.replaced_at > ? AND r.replaced_at <= ? AND ${scope.sql} ORDER BY r.memory, r.version`,
  );
  const values = [from, from, to, ...scope.parameters];
  const { rows } = readUntilWorkEnds(() => statement.iterate(...values) as IterableIterator<RevisionRow>);
  for (const [memoryNo, steps] of Map.groupBy(rows, (row) => row.memoryNo)) {
    const [first, last] = [steps[0]!, steps.at(-1)!];
    const fields = new Set(steps.flatMap(stepFields));
    // What was stored in the window is shown as it was at its end; a change of it is no change between the two times.
    if (fields.size > 0 && first.isNew === 0) {
      const at = steps.findLast((step) => stepFields(step).length > 0)!.at;
      found.changed.push({ memoryNo, at, fields: [...fields] });
    }
    if (first.before === last.after) continue;
    const moved = steps.findLast((step) => step.before !== step.after) ?? last;
    const list = LIST_OF_STATUS[last.after];
    if (list !== undefined) found[list].push({ memoryNo, at: moved.at });
  }
  for (const list of [found.changed, found.superseded, found.archived, found.restored]) list.sort(byTime);
}

const LIST_OF_STATUS: Readonly<Record<string, 'superseded' | 'archived' | 'restored'>> = {
  superseded: 'superseded',
  archived: 'archived',
  active: 'restored',
};

/**
 * Returns the names of the fields that a caller changed; empty for a change that a link caused. The status is left out,
 * since changes of the status have lists of their own.
 */
function stepFields({ fields, byLink }: RevisionRow): string[] {
  return byLink === 1 ? [] : fields.split(',').filter((field) => field !== 'status');
}

interface Pair {
  readonly a: number;
  readonly b: number;
  readonly winner: number | null;
  readonly automatic: boolean;
  readonly at: number;
}

/**
 * Lists the contradictions between two memories in scope that a caller or Cairn recorded between the two times,
 * earliest first.
 */
function contradictionsIn(store: Store, { from, to }: DiffRequest, scope: CompiledFilter): Pair[] {
  const rows = store
    .prepare(
      `SELECT src AS a, dst AS b, winner, automatic, created_at AS at FROM edges INDEXED BY edges_contradicting
       WHERE type = 'contradicts' AND created_at > ? AND created_at <= ? ORDER BY created_at, src, dst`,
    )
    .all(from, to) as (Omit<Pair, 'automatic'> & { automatic: number })[];
  if (rows.length === 0) return [];
  const pairs = rows.map((row) => ({ ...row, automatic: row.automatic === 1 }));
  const named = [...new Set(pairs.flatMap(({ a, b }) => [a, b]))];
  const passing = store
    .prepare(
      `SELECT m.seq FROM json_each(?) AS wanted CROSS JOIN memories m ON m.seq = wanted.value
       CROSS JOIN memory_dynamics d ON d.seq = m.seq WHERE ${scope.sql}`,
    )
    .pluck()
    .all(JSON.stringify(named), ...scope.parameters) as number[];
  const inScope = new Set(passing);
  return pairs.filter(({ a, b }) => inScope.has(a) && inScope.has(b));
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
 * Makes the functions that read the memories of the lists. They read memories as they were at the second time; on the
 * axis `valid`, as they are now. A version that lacks one of the tags `withinTags` is left out, since the caller was
 * not allowed to see it.
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
  /** Reads the first of these memories, as many as have texts and values of `LIST_BYTES` together. */
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

    changedOf(list: FoundLists['changed']): ChangedEntry[] {
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

    fadedOf(list: FoundLists['faded']) {
      const memories = atEnd(list.map(({ memoryNo }) => memoryNo));
      return list.flatMap(({ memoryNo, ...values }) => {
        const memory = memories.get(memoryNo);
        return memory === undefined ? [] : [{ memory, ...values }];
      });
    },
  };
}
