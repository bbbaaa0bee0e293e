import { shownGist } from '../entities/skim.ts';
import { boundsOf, originsOf, sourcesOf } from '../store/derivations.ts';
import { readProvenance } from '../store/provenance.ts';
import { weightOf } from '../store/memory-weight.ts';
import type { Store } from '../store/open-store.ts';
import { neighboursOf } from '../store/timeline.ts';
import type { Episode, Hit, Memory } from '../types.ts';
import type { MemoryReader } from './memory-reader.ts';
import type { Packed, Packing } from './pack.ts';
import type { StageResults } from './stage-results.ts';

/** Greatest number of neighbouring memories that are returned on each side of a hit. */
const NEIGHBOURS = 2;
/** Greatest number of source memories that are returned with a hit. */
const SOURCES = 3;
/**
 * Greatest total size of the memories around all hits, in bytes. From the first hit whose surrounding memories exceed
 * it, hits are returned without them. A memory may have 2 MiB, and is repeated for each hit.
 */
const MAX_BYTES = 4 * 1024 * 1024;

/** The memories, documents and episodes around the hits of a query, as the query requests them. */
export interface Surroundings {
  /** The neighbours, sources and document of each hit, in the order of the hits. */
  readonly around: readonly Pick<Hit, 'neighbours' | 'sources' | 'document'>[];
  /**
   * The episodes of the hits; left out unless `includeEpisodes` requests them or, if that is not set, the format is
   * `prompt`.
   */
  readonly episodes?: readonly Episode[];
}

/**
 * Reads the documents of the hits and, if the query requests them, their neighbours, sources and episodes, with one SQL
 * statement each for all hits. The memories around a hit must pass the query's filter like the hits, so that a query
 * returns nothing that it could not find.
 */
export function surroundingsOf(store: Store, recall: StageResults, reader: MemoryReader): Surroundings {
  const { query, packing } = recall;
  const wantsEpisodes = query.includeEpisodes ?? query.format === 'prompt';
  if (wantsEpisodes) store.ahead?.readSpeculatively(() => episodesOf(store, packing.packed, recall, reader));
  const around = placed(store, packing, aroundOf(store, recall, reader));
  if (!wantsEpisodes) return { around };
  return { around, episodes: episodesOf(store, packing.packed, recall, reader) };
}

/** Adds to each hit that is a part of a document its position in the document. */
function placed(store: Store, { packed, provenance }: Packing, around: Surroundings['around']): Surroundings['around'] {
  const places = provenance ?? readProvenance(store, memoryNosOf(packed));
  if (places.size === 0) return around;
  return around.map((surrounding, place) => {
    const document = places.get(packed[place]!.candidate.row.memoryNo);
    return document === undefined ? surrounding : { ...surrounding, document };
  });
}

const memoryNosOf = (packed: readonly Packed[]) => packed.map(({ candidate }) => candidate.row.memoryNo);

function aroundOf(store: Store, { packing, plan, query }: StageResults, reader: MemoryReader): Surroundings['around'] {
  const memoryNos = memoryNosOf(packing.packed);
  const visible = plan.liveFilter;
  const wants = (expansion: 'neighbours' | 'document') =>
    memoryNos.length > 0 && query.expand?.includes(expansion) === true;
  const readSources = () => (wants('document') ? sourcesOf(store, memoryNos, { visible, most: SOURCES }) : null);
  store.ahead?.readSpeculatively(readSources);
  const neighbours = wants('neighbours') ? neighboursOf(store, memoryNos, { visible, each: NEIGHBOURS }) : null;
  const sources = readSources();
  if (neighbours === null && sources === null) return memoryNos.map(() => ({}));
  const places = memoryNos.map((memoryNo) => ({
    before: neighbours?.get(memoryNo)?.before ?? [],
    after: neighbours?.get(memoryNo)?.after ?? [],
    sources: sources?.get(memoryNo) ?? [],
  }));
  const memories = readWithin(
    places.map((place) => Object.values(place).flat()),
    reader,
  );
  const present = (numbers: readonly number[], place: number) =>
    place < memories.hits
      ? numbers.map((memoryNo) => memories.byMemoryNo.get(memoryNo)).filter((memory) => memory !== undefined)
      : [];
  return places.map(({ before, after, sources: from }, place) => ({
    ...(neighbours === null ? {} : { neighbours: { before: present(before, place), after: present(after, place) } }),
    ...(sources === null ? {} : { sources: present(from, place) }),
  }));
}

/**
 * Reads the memories around the hits, from the first hit on, up to the first whose texts exceed `MAX_BYTES` (4 MiB).
 * @param places `memoryNo` of the memories around each hit
 * @returns `hits`, the number of hits whose surrounding memories were read
 */
function readWithin(
  places: readonly (readonly number[])[],
  reader: MemoryReader,
): { readonly hits: number; readonly byMemoryNo: ReadonlyMap<number, Memory> } {
  const all = [...new Set(places.flat())];
  const within = reader.within(all, MAX_BYTES);
  const byMemoryNo = reader.read(within);
  const weighed = (memory: Memory | undefined) => (memory === undefined ? 0 : weightOf(memory));
  const weights = new Map(within.map((memoryNo) => [memoryNo, weighed(byMemoryNo.get(memoryNo))]));
  let left = MAX_BYTES;
  const beyond = places.findIndex((memoryNos) => {
    // A memory that is around several hits counts once for each of them.
    for (const memoryNo of memoryNos) left -= weights.get(memoryNo) ?? Infinity;
    return left < 0;
  });
  return { hits: beyond === -1 ? places.length : beyond, byMemoryNo };
}

/**
 * Lists the episodes of the hits, in the order of the best hit of each. The episode of a hit is the root memory from
 * which the hit is derived, or the hit itself if others are derived from it, else its session. A hit with none of these
 * has no episode, and neither has one whose root was not read: because all roots together exceed 4 MiB, or because it
 * was erased meanwhile.
 */
function episodesOf(
  store: Store,
  packed: readonly Packed[],
  { plan, query }: StageResults,
  reader: MemoryReader,
): Episode[] {
  const seen = { followed: plan.liveFilter, bounds: boundsOf(query.filter) };
  const origins = originsOf(store, memoryNosOf(packed), seen);
  const groups = new Map<string, { readonly root: number | null; readonly members: Memory[] }>();
  for (const { candidate, memory } of packed) {
    const { memoryNo, userNo, sessionId } = candidate.row;
    const origin = origins.get(memoryNo);
    const root = origin !== undefined && (origin.root !== memoryNo || origin.isSource) ? origin.root : null;
    if (root === null && sessionId === '') continue;
    const key = root === null ? `${userNo} ${sessionId}` : `${root}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { root, members: [memory] });
    else group.members.push(memory);
  }
  const rootNos = [...groups.values()].flatMap(({ root }) => root ?? []);
  const roots = reader.read(reader.within(rootNos, MAX_BYTES));
  return [...groups.values()].flatMap(({ root, members }) => {
    const memoryIds = members.map(({ id }) => id);
    if (root === null) {
      const { sessionId, userId } = members[0]!;
      return { kind: 'session', id: sessionId, userId, title: sessionId, memory: null, memoryIds };
    }
    const memory = roots.get(root);
    if (memory === undefined) return [];
    const title = memory.title === '' ? shownGist(memory) : memory.title;
    return { kind: 'memory', id: memory.id, userId: memory.userId, title, memory, memoryIds };
  });
}
