import { assert } from '../errors.ts';
import { type EdgeType, type MemoryFilter, type MemoryStatus, TEXT_COLUMNS } from '../types.ts';
import type { CompiledFilter } from './filter.ts';
import type { Store } from './open-store.ts';
import { compareInt5, encodedLength, encodeVector } from './vector-encoding.ts';
import type { VectorSpace } from './vectors.ts';

/**
 * The statements of retrieval. What finds by words (`word-index/`) or by vectors knows no filter but the user: `firstPassing` asks the filter
 * about what they found, best first, so that a memory outside of it neither shows nor takes the place of one inside, and whoever asks
 * finds more where too little is left. CROSS JOIN fixes the order of the joins.
 */

/** How many memories the file holds. The highest `seq` would not do: it never falls, and FTS5 weighs words by the rows that exist. */
export function countMemories(store: Store): number {
  return (store.prepare('SELECT sum(memories) AS memories FROM users').get() as { memories: number }).memories;
}

export function countMemoriesAfter(store: Store, seq: number): number {
  return (store.prepare('SELECT count(*) AS n FROM memories WHERE seq > ?').get(seq) as { n: number }).n;
}

/** The highest number of a memory; 0 where there is none. */
export function lastMemory(store: Store): number {
  return (store.prepare('SELECT max(seq) AS last FROM memories').get() as { last: number | null }).last ?? 0;
}

/** Those of the users who have memories here, with how many, in a fixed order. */
export function findUsers(
  store: Store,
  userIds: readonly string[],
): { readonly userNo: number; readonly memories: number }[] {
  return store
    .prepare(
      'SELECT user_no AS userNo, memories FROM users WHERE user_id IN (SELECT value FROM json_each(?)) ORDER BY user_no',
    )
    .all(JSON.stringify(userIds)) as { userNo: number; memories: number }[];
}

/** Numbers of at most `limit` memories that pass. */
export function listPassing(store: Store, filter: CompiledFilter, limit: number): number[] {
  return store
    .prepare(
      `SELECT m.seq FROM memories m CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE ${filter.sql} ORDER BY m.seq LIMIT ?`,
    )
    .pluck()
    .all(...filter.parameters, limit) as number[];
}

/** Which of these memories pass. */
export function listPassingOf(store: Store, filter: CompiledFilter, seqs: readonly number[]): number[] {
  if (seqs.length === 0) return [];
  return store
    .prepare(
      `SELECT m.seq FROM json_each(?) AS wanted CROSS JOIN memories m ON m.seq = wanted.value
         CROSS JOIN memory_dynamics d ON d.seq = m.seq WHERE ${filter.sql}`,
    )
    .pluck()
    .all(JSON.stringify(seqs), ...filter.parameters) as number[];
}

/** Which of these memories are superseded. */
export function listSuperseded(store: Store, seqs: readonly number[]): number[] {
  if (seqs.length === 0) return [];
  return store
    .prepare(
      `SELECT d.seq FROM json_each(?) AS wanted CROSS JOIN memory_dynamics d ON d.seq = wanted.value
       WHERE d.status = 'superseded'`,
    )
    .pluck()
    .all(JSON.stringify(seqs)) as number[];
}

/** True if the filter asks for more than users and what is hidden by default. */
export function isNarrowing(filter: MemoryFilter): boolean {
  return Object.entries(filter).some(([name, value]) => name !== 'userIds' && value !== undefined);
}

/** What a memory itself says. */
export const OWN_COLUMNS = TEXT_COLUMNS.filter((column) => column !== 'context');

export interface VectorRank {
  readonly seq: number;
  /** The window of the text that is nearest. */
  readonly window: number;
  /** Cosine, -1..1. */
  readonly similarity: number;
}

export interface VectorScan {
  readonly space: VectorSpace;
  /** The query. */
  readonly embedding: Float32Array;
  readonly limit: number;
}

export interface VectorRanks {
  /** Nearest first; ties by ascending number. */
  readonly nearest: readonly VectorRank[];
  /** Of every memory, in no order. */
  readonly compared: readonly VectorRank[];
}

/**
 * Exact cosine of these memories' best windows. They must have passed a filter.
 * @param vectorNos their vectors', where these are known, among which may be others'
 */
export function rankVectorsOf(
  store: Store,
  scan: VectorScan,
  seqs: readonly number[],
  vectorNos?: readonly number[],
): VectorRanks {
  const compared =
    vectorNos === undefined
      ? compareWindows(store, scan, `v.memory = wanted.value AND v.sector = ''`, seqs)
      : amongOnly(seqs, compareWindows(store, scan, 'v.vector_no = wanted.value', vectorNos));
  if (compared.length <= scan.limit) return { nearest: compared.toSorted(byNearness), compared };
  // To put all in order takes as long as to compare a fifth of them.
  const least = Float64Array.from(compared, ({ similarity }) => similarity)
    .sort()
    .at(-scan.limit)!;
  const near = compared.filter(({ similarity }) => similarity >= least);
  return { nearest: near.sort(byNearness).slice(0, scan.limit), compared };
}

function amongOnly(seqs: readonly number[], ranks: readonly VectorRank[]): readonly VectorRank[] {
  const wanted = new Set(seqs);
  return ranks.filter(({ seq }) => wanted.has(seq));
}

/** The same for what an index found, by vector number: the nearest memories that pass the filter. */
export function rankVectors(
  store: Store,
  scan: VectorScan,
  vectorNos: readonly number[],
  filter: CompiledFilter,
): VectorRank[] {
  const ranks = compareWindows(store, scan, 'v.vector_no = wanted.value', vectorNos);
  return firstPassing(store, filter, ranks.sort(byNearness), scan.limit);
}

function byNearness(a: VectorRank, b: VectorRank): number {
  return b.similarity - a.similarity || a.seq - b.seq || a.window - b.window;
}

/** Windows that are compared at once. */
const COMPARED_AT_ONCE = 1_000;

/** The best window of each memory among those that a condition finds by `wanted`, in no order. */
function compareWindows(store: Store, scan: VectorScan, condition: string, wanted: readonly number[]): VectorRank[] {
  const compare = scan.space.encoding === 'int5' ? inCode(store, scan, condition) : inSql(store, scan, condition);
  const best = new Map<number, VectorRank>();
  for (let at = 0; at < wanted.length; at += COMPARED_AT_ONCE) {
    for (const rank of compare(wanted.slice(at, at + COMPARED_AT_ONCE))) {
      const other = best.get(rank.seq);
      if (other === undefined || byNearness(rank, other) < 0) best.set(rank.seq, rank);
    }
  }
  return [...best.values()];
}

type Compare = (wanted: readonly number[]) => VectorRank[];

function inSql(store: Store, { space, embedding }: VectorScan, condition: string): Compare {
  const query = encodeVector(embedding, space.encoding);
  const select = store.prepare(
    `SELECT v.memory AS seq, v.window_no AS window, 1 - vec_distance_cosine(v.embedding, ?) AS similarity
     FROM json_each(?) AS wanted CROSS JOIN vectors v ON ${condition} WHERE v.model_no = ? AND v.window_no >= 0`,
  );
  return (wanted) => {
    const windows = select.all(query, JSON.stringify(wanted), space.modelNo) as VectorRank[];
    return windows.filter(({ similarity }) => similarity !== null);
  };
}

/** Of all vectors in one blob, since a blob each costs twice what comparing them does. */
function inCode(store: Store, { space, embedding }: VectorScan, condition: string): Compare {
  const cosineOf = compareInt5(embedding);
  const length = encodedLength(space.encoding, space.dimensions);
  const select = store
    .prepare(
      `SELECT json_group_array(v.memory), json_group_array(v.window_no), CAST(group_concat(v.embedding, '') AS BLOB)
       FROM json_each(?) AS wanted CROSS JOIN vectors v ON ${condition} WHERE v.model_no = ? AND v.window_no >= 0`,
    )
    .raw();
  return (wanted) => {
    const [memories, windows, vectors] = select.get(JSON.stringify(wanted), space.modelNo) as [string, string, Buffer];
    const seqs = JSON.parse(memories) as number[];
    const windowNos = JSON.parse(windows) as number[];
    assert((vectors?.length ?? 0) === length * seqs.length, 'stored vectors of another length');
    return seqs.map((seq, place) => ({
      seq,
      window: windowNos[place]!,
      similarity: cosineOf(vectors, length * place),
    }));
  };
}

/** To look a memory up for the filter costs as much as half a cosine: so many more than wanted are asked about before the others are. */
const SPARE = 1.5;

/** The first `limit` of them that pass. */
export function firstPassing<T extends { readonly seq: number }>(
  store: Store,
  filter: CompiledFilter,
  inOrder: readonly T[],
  limit: number,
): T[] {
  const found: T[] = [];
  for (
    let at = 0, count = Math.ceil(SPARE * limit);
    at < inOrder.length && found.length < limit;
    at += count, count *= 4
  ) {
    const some = inOrder.slice(at, at + count);
    const passing = new Set(
      listPassingOf(
        store,
        filter,
        some.map(({ seq }) => seq),
      ),
    );
    found.push(...some.filter(({ seq }) => passing.has(seq)));
  }
  return found.slice(0, limit);
}

/** One step over a link, in whichever direction it was drawn. */
export interface Step {
  readonly origin: number;
  readonly reached: number;
  readonly type: EdgeType;
  readonly weight: number;
}

/** Links of one origin that are looked at in each direction, the strongest ones: a hub costs no more, whatever the filter leaves of it. */
const LINKS_READ = 2_000;

/** So many links of all origins together are read as they come, and chosen from here: a third of the time where there are no hubs. */
const FEW_LINKS = 400;

/** Where links may lead. */
export interface Allowed {
  readonly filter: CompiledFilter;
  /** All memories that pass it, where they are known. */
  readonly passing?: ReadonlySet<number> | undefined;
}

/**
 * The strongest links of each origin to memories that pass the filter. `contradicts` is no way to walk: what disagrees with
 * a hit does not become one for it.
 */
export function stepsFrom(store: Store, origins: readonly number[], allowed: Allowed, perOrigin: number): Step[] {
  const links = listLinksOf(store, origins, FEW_LINKS + 1);
  return links.length > FEW_LINKS
    ? strongestSteps(store, origins, allowed.filter, perOrigin)
    : chooseSteps(store, links, allowed, perOrigin);
}

/** At most `limit` links of these memories, in both directions. */
function listLinksOf(store: Store, origins: readonly number[], limit: number): Step[] {
  const numbers = JSON.stringify(origins);
  return store
    .prepare(
      `SELECT e.src AS origin, e.dst AS reached, e.type, e.weight
       FROM json_each(?) AS o CROSS JOIN edges e INDEXED BY edges_by_src_weight ON e.src = o.value
       UNION ALL
       SELECT e.dst, e.src, e.type, e.weight
       FROM json_each(?) AS o CROSS JOIN edges e INDEXED BY edges_by_dst_weight ON e.dst = o.value
       LIMIT ?`,
    )
    .all(numbers, numbers, limit) as Step[];
}

function chooseSteps(
  store: Store,
  links: readonly Step[],
  { filter, passing = passingOf(store, filter, links) }: Allowed,
  perOrigin: number,
): Step[] {
  const steps = links.filter(({ type }) => type !== 'contradicts');
  if (steps.length === 0) return [];
  const inOrder = steps
    .filter(({ reached }) => passing.has(reached))
    .sort((a, b) => a.origin - b.origin || b.weight - a.weight || a.reached - b.reached || (a.type < b.type ? -1 : 1));
  const first = new Map<number, number>();
  return inOrder.filter(({ origin }, place) => {
    if (!first.has(origin)) first.set(origin, place);
    return place - first.get(origin)! < perOrigin;
  });
}

function passingOf(store: Store, filter: CompiledFilter, links: readonly Step[]): ReadonlySet<number> {
  return new Set(listPassingOf(store, filter, [...new Set(links.map(({ reached }) => reached))]));
}

/** The same where some have many: no more links are read than are wanted, whatever the hub has. */
function strongestSteps(store: Store, origins: readonly number[], filter: CompiledFilter, perOrigin: number): Step[] {
  const numbers = JSON.stringify(origins);
  return store
    .prepare(
      `WITH step AS (
         ${strongestLinks('src', 'dst', filter)}
         UNION ALL
         ${strongestLinks('dst', 'src', filter)}
       ), numbered AS (
         SELECT origin, reached, type, weight,
           row_number() OVER (PARTITION BY origin ORDER BY weight DESC, reached, type) AS place
         FROM step
       )
       SELECT origin, reached, type, weight FROM numbered WHERE place <= ? ORDER BY origin, place`,
    )
    .all(
      ...[numbers, ...filter.parameters, perOrigin],
      ...[numbers, ...filter.parameters, perOrigin],
      perOrigin,
    ) as Step[];
}

/**
 * One direction of it. SQLite has no lateral join but to a table-valued function, so the links that pass come out of the index as
 * JSON and are looked up again. What is read in the order of the index leaves it in this order: the reading ends with the last
 * link that is wanted.
 */
function strongestLinks(from: 'src' | 'dst', to: 'src' | 'dst', filter: CompiledFilter): string {
  return `SELECT o.value AS origin, e.${to} AS reached, e.type, e.weight
         FROM json_each(?) AS o CROSS JOIN json_each((
           SELECT json_group_array(json_array(reached, type)) FROM (
             SELECT near.reached, near.type FROM (
               SELECT ${to} AS reached, type FROM edges WHERE ${from} = o.value
               ORDER BY weight DESC, ${to}, type LIMIT ${LINKS_READ}
             ) AS near CROSS JOIN memories m ON m.seq = near.reached CROSS JOIN memory_dynamics d ON d.seq = near.reached
             WHERE near.type <> 'contradicts' AND ${filter.sql} LIMIT ?
           ))) AS strong
           CROSS JOIN edges e ON e.${from} = o.value AND e.${to} = strong.value ->> 0 AND e.type = strong.value ->> 1`;
}

/** What ranking needs to know of a memory besides the query. */
export interface RankingRow {
  readonly seq: number;
  readonly id: string;
  readonly userNo: number;
  readonly sessionId: string;
  readonly eventTime: number;
  readonly status: MemoryStatus;
  readonly confidence: number;
  readonly salience: number;
  readonly salienceAt: number;
  readonly decayLambda: number;
  readonly strength: number;
  readonly strengthAt: number;
  readonly lastSeenAt: number;
}

/** In ascending order of number; unknown numbers are left out. */
export function readRankingRows(store: Store, seqs: readonly number[]): RankingRow[] {
  if (seqs.length === 0) return [];
  return store
    .prepare(
      `SELECT d.seq, m.id, m.user_no AS userNo, m.session_id AS sessionId, m.event_time AS eventTime, m.confidence, d.status,
         d.salience, d.salience_at AS salienceAt, d.decay_lambda AS decayLambda, d.strength, d.strength_at AS strengthAt,
         d.last_seen_at AS lastSeenAt
       FROM memory_dynamics d JOIN memories m ON m.seq = d.seq
       WHERE d.seq IN (SELECT value FROM json_each(?)) ORDER BY d.seq`,
    )
    .all(JSON.stringify(seqs)) as RankingRow[];
}

/** What a memory itself says, as the word index has it without its neighbours; lists as JSON. */
export interface OwnText {
  readonly content: string;
  readonly title: string;
  readonly gist: string;
  readonly entities: string;
  readonly tags: string;
}

/** The first `characters` of these memories' texts with all their labels, by number. */
export function readOwnTexts(store: Store, seqs: readonly number[], characters: number): Map<number, OwnText> {
  if (seqs.length === 0) return new Map();
  const rows = store
    .prepare(
      `SELECT seq, substr(content, 1, ?) AS content, title, gist, entities, tags
       FROM memories WHERE seq IN (SELECT value FROM json_each(?))`,
    )
    .all(characters, JSON.stringify(seqs)) as (OwnText & { seq: number })[];
  return new Map(rows.map((row) => [row.seq, row]));
}

/** Title, gist, entities and tags, a line each; '' where none was given. */
export function labelsOf({ title, gist, entities, tags }: OwnText): string {
  if (title === '' && gist === '' && entities === '[]' && tags === '[]') return '';
  return [title, gist, entities === '[]' ? '' : entities, tags === '[]' ? '' : tags]
    .filter((label) => label !== '')
    .join('\n');
}

/** `readOwnTexts` of one snapshot: what was read whole is not read again. */
export type TextReader = (seqs: readonly number[], characters: number) => ReadonlyMap<number, OwnText>;

export function createTextReader(store: Store): TextReader {
  const whole = new Map<number, OwnText>();
  return (seqs, characters) => {
    const texts = readOwnTexts(
      store,
      seqs.filter((seq) => (whole.get(seq)?.content.length ?? Infinity) > characters),
      characters,
    );
    for (const seq of seqs) {
      const text = texts.get(seq);
      if (text === undefined && whole.has(seq)) texts.set(seq, whole.get(seq)!);
      else if (text !== undefined && text.content.length < characters) whole.set(seq, text);
    }
    return texts;
  };
}

export interface SampledMemory {
  readonly seq: number;
  readonly userNo: number;
  readonly userId: string;
  readonly sessionId: string;
  /** How it begins. */
  readonly content: string;
}

/** At most `count` different memories drawn by `random`, each text to its first `characters`. */
export function sampleMemories(
  store: Store,
  { count, characters, random }: { readonly count: number; readonly characters: number; readonly random: () => number },
): SampledMemory[] {
  const { least, most } = store.prepare('SELECT min(seq) AS least, max(seq) AS most FROM memories').get() as {
    least: number | null;
    most: number | null;
  };
  if (least === null || most === null) return [];
  const next = store.prepare(
    `SELECT m.seq, m.user_no AS userNo, u.user_id AS userId, m.session_id AS sessionId, substr(m.content, 1, ?) AS content
     FROM memories m CROSS JOIN users u ON u.user_no = m.user_no WHERE m.seq >= ? ORDER BY m.seq LIMIT 1`,
  );
  const drawn = new Map<number, SampledMemory>();
  for (let draw = 0; draw < count; draw += 1) {
    const memory = next.get(characters, least + Math.floor(random() * (most - least + 1))) as SampledMemory;
    drawn.set(memory.seq, memory);
  }
  return [...drawn.values()];
}
