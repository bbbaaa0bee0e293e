/**
 * Finds the threads that a run of consolidation makes one memory of each. A thread here is a group of memories of one
 * user that say nearly the same or follow one topic.
 */
import { gatherSentences, tellingWords } from '../reasoning/gather-sentences.ts';
import { listGatherable, listWaypointsOf, type Gatherable, type Near } from '../store/gatherable.ts';
import { nextUserNo, startOfUser, type ConsolidationRun, type RunPlace } from '../store/consolidations.ts';
import { readMemoryRows, type MemoryRow } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { textOfMemory } from './text-of-memory.ts';

/** Greatest number of memories that one call examines and compares; a thread consists of memories of one call only. */
const LOOKED_AT_ONCE = 1_000;
/** Greatest number of memories of a thread, which become the sources of one consolidation. */
const MAX_SOURCES = 8;
/** Least nearness (0 for unrelated texts, 1 for equal ones) at which two memories count as about one topic. */
const NEARNESS_OF_A_TOPIC = 0.6;
/** Least nearness of the two memories of a thread that has no third one. */
const NEARNESS_OF_A_PAIR = 0.8;
/**
 * Smallest number of distinct words, without stop words, of a text that is consolidated: in a shorter text, no word can
 * be left out.
 */
const LEAST_WORDS = 5;
/**
 * Least share of its words, weighted by their rarity, that a text must have in common with another to be joined with
 * it. It must hold for that of the two texts whose words weigh less.
 */
const LEAST_SHARED = 0.3;

/**
 * Similar memories that can be consolidated into one: their rows in order of time, and `content`, the text that is made
 * of their sentences.
 */
export interface Thread {
  readonly rows: readonly MemoryRow[];
  readonly content: string;
}

/** The threads (groups of similar memories) that one call found among the next memories of a scope. */
export interface FoundThreads {
  /**
   * The threads, each made only when it is asked for, which may take 40 ms; null for similar memories whose texts do
   * not fit together. It can be iterated once, also outside of the transaction.
   */
  readonly threads: Iterable<Thread | null>;
  /** Number of bytes of text that were read. */
  readonly bytes: number;
  /** Position after these memories, where the next call begins; null after the last memory of the scope. */
  readonly next: RunPlace | null;
}

/**
 * Finds threads among the next memories after `place`, at most 1,000, in order of time and all of one user; those that
 * `listGatherable` leaves out are in no thread. A thread has at most 8 memories that say nearly the same or follow one
 * topic, have equal tags and metadata, and were written by one key.
 * The nearest pairs are joined first: two memories with a waypoint (automatic link) between them, or two whose
 * waypoints lead to the same third memory, which cannot be in a thread with them itself. The same memories give the
 * same threads. Call it inside a read transaction.
 * @param cosineBase base (see `baseOfCosines`) of the space in which waypoints are measured; the nearness of two
 *   memories is counted from it
 */
export function findThreads(
  store: Store,
  { userNo, place, again }: Pick<ConsolidationRun, 'userNo' | 'place' | 'again'>,
  cosineBase: number,
): FoundThreads {
  const slice = listGatherable(store, place, { looked: LOOKED_AT_ONCE, again });
  const links = linksAmong(store, slice.memories, ({ similarity }) => (similarity - cosineBase) / (1 - cosineBase));
  const linked = [...new Set(links.flatMap(({ src, dst }) => [src, dst]))];
  const rows = new Map(readMemoryRows(store, linked).map((row) => [row.memoryNo, row]));
  const texts = new Map([...rows].map(([memoryNo, row]) => [memoryNo, textOfMemory(row)]));
  const topics = createTopics(texts);
  const groups = joinNear(links.filter(topics.areShared));
  const bytes = [...texts.values()].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  const later = userNo === null ? nextUserNo(store, place.userNo) : undefined;
  return {
    threads: threadsOf(
      groups.map((group) => group.map((memoryNo) => rows.get(memoryNo)!)),
      topics.rarityOf,
    ),
    bytes,
    next: slice.next ?? (later === undefined ? null : startOfUser(later)),
  };
}

function* threadsOf(
  groups: readonly (readonly MemoryRow[])[],
  rarityOf: (word: string) => number,
): Generator<Thread | null> {
  for (const group of groups) {
    const sources = [...group].sort(byTime);
    const said = sources.map((row) => ({ text: textOfMemory(row), saidAt: row.event_time }));
    const gathered = gatherSentences(said, rarityOf);
    yield gathered && { content: gathered.content, rows: gathered.sources.map((source) => sources[source]!) };
  }
}

function byTime(one: MemoryRow, other: MemoryRow): number {
  return one.event_time - other.event_time || one.memoryNo - other.memoryNo;
}

/**
 * A link between two memories that may be consolidated together. `nearness` is their similarity, 0 for unrelated texts
 * and 1 for equal ones.
 */
interface NearPair {
  readonly src: number;
  readonly dst: number;
  readonly nearness: number;
}

/**
 * Lists the links (waypoints, and those of `linksBy`) between memories with equal keys whose nearness is at least 0.6,
 * nearest first. Two memories have equal keys if they have the same tags, metadata and writer.
 */
function linksAmong(store: Store, memories: readonly Gatherable[], nearness: (link: Near) => number): NearPair[] {
  const keyOf = new Map(memories.map(({ memoryNo, key }) => [memoryNo, key]));
  const [within, beyond] = [[] as Near[], [] as Near[]];
  for (const link of listWaypointsOf(store, [...keyOf.keys()]))
    (keyOf.get(link.src) === keyOf.get(link.dst) ? within : beyond).push(link);
  return [...within, ...linksBy(beyond, keyOf)]
    .map((link) => ({ src: link.src, dst: link.dst, nearness: nearness(link) }))
    .filter((pair) => pair.nearness >= NEARNESS_OF_A_TOPIC)
    .sort((a, b) => b.nearness - a.nearness || a.src - b.src);
}

/**
 * Links memories with equal keys (tags, metadata and writer) whose waypoints (automatic links) lead to the same third
 * memory, each to the one before it in the list, if that memory cannot be consolidated with them, for example because
 * it is the source of a consolidation already. Their similarity is estimated as the product of their cosines to the
 * third memory.
 */
function linksBy(links: readonly Near[], keyOf: ReadonlyMap<number, string>): Near[] {
  const groups = Map.groupBy(links, ({ src, dst }) => `${dst} ${keyOf.get(src)}`);
  return [...groups.values()].flatMap((group) =>
    group.slice(1).map(({ src, similarity }, place) => {
      const before = group[place]!;
      return { src, dst: before.src, similarity: similarity * before.similarity };
    }),
  );
}

/**
 * Joins memories along links, nearest first, into groups of at most 8. A group of two is returned only if its link has
 * a nearness of at least 0.8.
 * @returns groups of `memoryNo`, two or more each
 */
function joinNear(links: readonly NearPair[]): readonly number[][] {
  const groupOf = new Map<number, number[]>(
    links.flatMap(({ src, dst }) => [
      [src, [src]],
      [dst, [dst]],
    ]),
  );
  const pairs = new Set<number>();
  for (const { src, dst, nearness } of links) {
    const [one, other] = [groupOf.get(src)!, groupOf.get(dst)!];
    if (one === other || one.length + other.length > MAX_SOURCES) continue;
    if (nearness >= NEARNESS_OF_A_PAIR) pairs.add(src);
    one.push(...other);
    for (const memoryNo of other) groupOf.set(memoryNo, one);
  }
  const groups = [...new Set(groupOf.values())];
  return groups.filter((group) => group.length > 2 || (group.length === 2 && group.some((one) => pairs.has(one))));
}

/**
 * Counts in how many of the texts each word occurs. The functions of the result tell how rare a word is, and whether
 * two texts have enough rare words in common.
 */
function createTopics(texts: ReadonlyMap<number, string>) {
  const wordsOf = new Map([...texts].map(([memoryNo, text]) => [memoryNo, tellingWords(text)]));
  const counts = new Map<string, number>();
  for (const own of wordsOf.values()) for (const word of own) counts.set(word, (counts.get(word) ?? 0) + 1);
  /** The rarity of a word among the texts, above 0: its inverse document frequency, as in BM25. */
  const rarityOf = (word: string) => {
    const count = counts.get(word) ?? 0;
    return Math.log(1 + (texts.size - count + 0.5) / (count + 0.5));
  };
  const weigh = (list: Iterable<string>) => [...list].reduce((sum, word) => sum + rarityOf(word), 0);
  return {
    rarityOf,
    /**
     * Whether two texts of at least 5 words each share enough rare words. Similar texts of small talk share only common
     * words.
     */
    areShared({ src, dst }: NearPair): boolean {
      const [one, other] = [wordsOf.get(src)!, wordsOf.get(dst)!];
      if (Math.min(one.size, other.size) < LEAST_WORDS) return false;
      const shared = weigh([...one].filter((word) => other.has(word)));
      return shared >= LEAST_SHARED * Math.min(weigh(one), weigh(other));
    },
  };
}
