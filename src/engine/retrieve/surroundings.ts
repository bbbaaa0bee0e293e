import { shownGist } from '../entities/skim.ts';
import { originsOf, sourcesOf } from '../store/derivations.ts';
import { readProvenance } from '../store/documents.ts';
import { contentBytes } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { neighboursOf } from '../store/timeline.ts';
import type { Episode, Hit, Memory } from '../types.ts';
import type { Packed } from './pack.ts';
import type { Recall } from './recall.ts';

/** On each side of a hit. */
const NEIGHBOURS = 2;
const SOURCES = 3;
/** Bytes of text around all hits; those further down go without. A single text may have 256 KiB, and is repeated beside each hit. */
const BYTES_MOST = 4 * 1024 * 1024;

type Read = (seqs: readonly number[]) => ReadonlyMap<number, Memory>;

/** What a query asked for around its hits, in their order. */
export interface Surroundings {
  /** One entry a hit. */
  readonly around: readonly Pick<Hit, 'neighbours' | 'sources' | 'document'>[];
  readonly episodes?: readonly Episode[];
}

/**
 * Neighbours, sources and episodes of the hits: one statement each for all of them. Like hits they must pass the query's filter, so that
 * a query shows nothing that it could not find.
 */
export function surroundingsOf(store: Store, recall: Recall, read: Read): Surroundings {
  const { query, packing } = recall;
  const around = placed(store, packing.packed, aroundOf(store, recall, read));
  if (!(query.includeEpisodes ?? query.format === 'prompt')) return { around };
  return { around, episodes: episodesOf(store, packing.packed, recall, read) };
}

/** The same with each hit's place in its document. */
function placed(store: Store, packed: readonly Packed[], around: Surroundings['around']): Surroundings['around'] {
  const places = readProvenance(
    store,
    packed.map(({ candidate }) => candidate.row.seq),
  );
  if (places.size === 0) return around;
  return around.map((surrounding, place) => {
    const document = places.get(packed[place]!.candidate.row.seq);
    return document === undefined ? surrounding : { ...surrounding, document };
  });
}

function aroundOf(store: Store, { packing, plan, query }: Recall, read: Read): Surroundings['around'] {
  const seqs = packing.packed.map(({ candidate }) => candidate.row.seq);
  const visible = plan.liveFilter;
  const wants = (expansion: 'neighbours' | 'document') => seqs.length > 0 && query.expand?.includes(expansion) === true;
  const neighbours = wants('neighbours') ? neighboursOf(store, seqs, { visible, each: NEIGHBOURS }) : null;
  const sources = wants('document') ? sourcesOf(store, seqs, { visible, most: SOURCES }) : null;
  if (neighbours === null && sources === null) return seqs.map(() => ({}));
  const places = seqs.map((seq) => ({
    before: neighbours?.get(seq)?.before ?? [],
    after: neighbours?.get(seq)?.after ?? [],
    sources: sources?.get(seq) ?? [],
  }));
  const memories = readWithin(
    store,
    places.map((place) => Object.values(place).flat()),
    read,
  );
  const present = (numbers: readonly number[], place: number) =>
    place < memories.hits ? numbers.map((seq) => memories.bySeq.get(seq)).filter((memory) => memory !== undefined) : [];
  return places.map(({ before, after, sources: from }, place) => ({
    ...(neighbours === null ? {} : { neighbours: { before: present(before, place), after: present(after, place) } }),
    ...(sources === null ? {} : { sources: present(from, place) }),
  }));
}

/** Reads what stands around as many of the first hits as the bound on bytes allows. */
function readWithin(
  store: Store,
  places: readonly (readonly number[])[],
  read: Read,
): { readonly hits: number; readonly bySeq: ReadonlyMap<number, Memory> } {
  const bytes = contentBytes(store, [...new Set(places.flat())]);
  let left = BYTES_MOST;
  const beyond = places.findIndex((seqs) => {
    for (const seq of seqs) left -= bytes.get(seq) ?? 0;
    return left < 0;
  });
  const hits = beyond === -1 ? places.length : beyond;
  return { hits, bySeq: read([...new Set(places.slice(0, hits).flat())]) };
}

/** What the hits belong to, in the order of the best hit of each: the memory they are derived from in the end, else their session. */
function episodesOf(store: Store, packed: readonly Packed[], { plan }: Recall, read: Read): Episode[] {
  const origins = originsOf(
    store,
    packed.map(({ candidate }) => candidate.row.seq),
    plan.liveFilter,
  );
  const groups = new Map<string, { readonly root: number | null; readonly members: Memory[] }>();
  for (const { candidate, memory } of packed) {
    const { seq, userNo, sessionId } = candidate.row;
    const origin = origins.get(seq);
    const root = origin !== undefined && (origin.root !== seq || origin.isSource) ? origin.root : null;
    if (root === null && sessionId === '') continue;
    const key = root === null ? `${userNo} ${sessionId}` : `${root}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { root, members: [memory] });
    else group.members.push(memory);
  }
  const roots = read([...groups.values()].flatMap(({ root }) => root ?? []));
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
