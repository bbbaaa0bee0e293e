/**
 * Joins the old blocks of terms, which a query reads one by one, into rows of up to 16 blocks. It is work of a worker's
 * upkeep, in commits of bounded size. The place that is reached is stored with each commit, so that any process goes on
 * from there. Searches and changes find blocks whether they are joined yet or not.
 */

import { copyOf } from '../../text/stem-finder.ts';
import { BLOCK_ROWS, JOINED_BLOCKS } from './block-codec.ts';
import type { OwnQuery } from './own-query.ts';

/** Number of the newest memories whose blocks are not joined yet, since they still change at times. */
const NEW_ROWS = 2_048;
/** Number of memories of a range: those of the blocks that are joined into one row. */
const RANGE = JOINED_BLOCKS * BLOCK_ROWS;

/**
 * Greatest number of blocks that one commit joins, while other writes of the tenant wait. Each block is a row of the
 * table, and takes some 10 µs.
 */
export const MOST_BLOCKS = 2_000;
/** Greatest number of bytes of the blocks that one commit joins. */
const MOST_BYTES = 4 * 1_024 * 1_024;
/**
 * Greatest size of a joined row, in bytes. A change of one old memory writes such a row, and to read rows of this size
 * one by one costs little beside their bytes.
 */
const MOST_ROW_BYTES = 1_024 * 1_024;
/** Greatest number of terms that one commit looks up; each has up to 16 blocks. */
const MOST_TERMS = 500;
/** Greatest number of memories whose terms one commit reads. */
const MOST_MEMORIES = 256;
/** Size of lists of terms, in bytes, after which a commit reads those of no further memory. */
const ENOUGH_BYTES = 65_536;
/**
 * Number of terms that were looked at and are remembered, so that they are not looked up for each memory that has them;
 * a commit that finds as many remembered forgets all of them.
 */
const REMEMBERED = 100_000;

const READ_PLACE = `SELECT joined, newest, joining, joining_terms FROM word_totals WHERE tenant = $1`;
const READ_TERMS = `SELECT id, terms FROM (
    SELECT id, terms, sum(octet_length(terms)) OVER (ORDER BY id) - octet_length(terms) AS before FROM word_rows
    WHERE tenant = $1 AND id >= $2::bigint AND id < $3::bigint ORDER BY id LIMIT ${MOST_MEMORIES}
  ) AS r WHERE before < ${ENOUGH_BYTES} ORDER BY id`;
/**
 * SQL condition on the blocks of the terms `$2` in the range that begins with the block `$3`. The list of terms is a
 * condition of the index, so the server has no other plan, whatever statistics it has.
 */
const OF_TERMS = `tenant = $1 AND term = ANY ($2::text[])
  AND block >= $3::bigint AND block < $3::bigint + ${JOINED_BLOCKS}`;
const COUNT_BLOCKS = `SELECT term, count(*), sum(octet_length(data))::bigint FROM word_blocks WHERE ${OF_TERMS}
  GROUP BY term HAVING count(*) > 1 AND bool_and(parts = '')`;
const JOIN = `WITH small AS (DELETE FROM word_blocks WHERE ${OF_TERMS} RETURNING term, block, rows, data)
  INSERT INTO word_blocks (tenant, term, block, rows, last, data, parts)
  SELECT $1, term, $3::bigint, sum(rows), 0, string_agg(data, '' ORDER BY block),
    string_agg(octet_length(data)::text, ',' ORDER BY block)
  FROM small GROUP BY term`;
const NOTE_PLACE = `UPDATE word_totals SET joined = $2::bigint, joining = $3::bigint, joining_terms = $4::int
  WHERE tenant = $1`;

/** How far the joining of the blocks of a tenant has come. */
interface Place {
  /** Number of ranges whose blocks were joined, from the first; the last of them may be being joined. */
  readonly joined: number;
  /** Number of the first memory whose terms were not all looked at; null if no range is being joined. */
  readonly memoryNo: number | null;
  /** Number of the terms of the memory `memoryNo` that were looked at. */
  readonly terms: number;
}

/** A term of a memory, and where the work goes on after it. */
interface NextTerm {
  readonly term: string;
  readonly memoryNo: number;
  readonly after: number;
}

/** Joins the blocks of one tenant. */
export interface BlockJoiner {
  /** Whether there are old blocks that were not looked at. Call outside of a write. */
  hasMore(): boolean;
  /** Joins some blocks, 2,000 and 4 MiB at most. Call inside a write. */
  joinSome(): void;
}

/** Makes what joins the blocks of a tenant; `own` runs statements for that tenant. */
export function createBlockJoiner(own: OwnQuery): BlockJoiner {
  /**
   * Terms that were looked at in the range up to `place`, which only saves to look them up again. They hold as long as
   * the index stores that place: a commit that was undone has joined nothing.
   */
  let seen: { readonly place: string; readonly terms: Set<string> } = { place: '', terms: new Set() };
  return {
    hasMore: () => placeToJoin(own) !== undefined,
    joinSome() {
      const place = placeToJoin(own);
      if (place === undefined) return;
      const range = place.joined - 1;
      const isKnown = seen.place === nameOf(place) && seen.terms.size < REMEMBERED;
      const known = isKnown ? seen.terms : new Set<string>();
      const { terms, goesOn } = unknownTerms(readTerms(own, place), place, known);
      const { joined, looked } = choose(own, terms, JOINED_BLOCKS * range);
      if (joined.length > 0) own.write('words-join', JOIN, [joined, JOINED_BLOCKS * range]);
      // A term is a part of its memory's list, which would stay in memory with it.
      for (const { term } of looked) known.add(copyOf(term));
      const last = looked.at(-1);
      const next = looked.length < terms.length ? { memoryNo: last!.memoryNo, terms: last!.after } : goesOn;
      own.write('words-joining', NOTE_PLACE, [place.joined, next?.memoryNo ?? null, next?.terms ?? 0]);
      seen =
        next === undefined
          ? { place: '', terms: new Set() }
          : { place: nameOf({ joined: place.joined, ...next }), terms: known };
    },
  };
}

function nameOf({ joined, memoryNo, terms }: Place): string {
  return [joined, memoryNo, terms].join();
}

/** Reads where blocks are to be joined next; undefined if all ranges that are old enough were joined. */
function placeToJoin(own: OwnQuery): (Place & { readonly memoryNo: number }) | undefined {
  const row = own.ask('words-joined-to', READ_PLACE, []).rows[0] as [number, number, number | null, number];
  const [joined, newest, memoryNo, terms] = row;
  if (memoryNo !== null) return { joined, memoryNo, terms };
  if (newest < RANGE * (joined + 1) + NEW_ROWS) return undefined;
  return { joined: joined + 1, memoryNo: RANGE * joined, terms: 0 };
}

type TermsOfMemory = readonly [memoryNo: number, terms: string];

/** Reads the terms of the next memories of the range; none at its end. */
function readTerms(own: OwnQuery, { joined, memoryNo }: Place): TermsOfMemory[] {
  return own.ask('words-of-range', READ_TERMS, [memoryNo, RANGE * joined]).rows as unknown as TermsOfMemory[];
}

/**
 * Lists the next terms of a range that are not known, each once and 500 at most.
 * @returns the terms, and where the work goes on after all of them (`goesOn`): undefined at the end of the range
 */
function unknownTerms(
  read: readonly TermsOfMemory[],
  place: Place,
  known: ReadonlySet<string>,
): { readonly terms: NextTerm[]; readonly goesOn: Pick<Place, 'memoryNo' | 'terms'> | undefined } {
  const found = new Map<string, NextTerm>();
  for (const [memoryNo, list] of read) {
    const terms = list === '' ? [] : list.split(' ');
    for (let at = memoryNo === place.memoryNo ? place.terms : 0; at < terms.length; at += 1) {
      if (found.size >= MOST_TERMS) return { terms: [...found.values()], goesOn: { memoryNo, terms: at } };
      const term = terms[at]!;
      if (!known.has(term) && !found.has(term)) found.set(term, { term, memoryNo, after: at + 1 });
    }
  }
  const last = read.at(-1);
  return { terms: [...found.values()], goesOn: last && { memoryNo: last[0] + 1, terms: 0 } };
}

/**
 * Chooses terms to join, from the first on, up to the greatest number of blocks and bytes of a commit. A term that has
 * a single block, joined ones already, or more bytes than a row may have is looked at and not joined.
 * @returns the terms to join, and all that were looked at: at least one of `terms`
 */
function choose(own: OwnQuery, terms: readonly NextTerm[], block: number): { joined: string[]; looked: NextTerm[] } {
  const joined: string[] = [];
  const looked: NextTerm[] = [];
  if (terms.length === 0) return { joined, looked };
  const answer = own.ask('words-to-join', COUNT_BLOCKS, [terms.map(({ term }) => term), block]);
  const sizes = new Map((answer.rows as [string, number, number][]).map(([term, ...size]) => [term, size]));
  let [blocks, bytes] = [0, 0];
  for (const next of terms) {
    const [itsBlocks, itsBytes] = sizes.get(next.term) ?? [0, 0];
    if (itsBlocks > 0 && itsBytes <= MOST_ROW_BYTES) {
      if (blocks + itsBlocks > MOST_BLOCKS || bytes + itsBytes > MOST_BYTES) break;
      [blocks, bytes] = [blocks + itsBlocks, bytes + itsBytes];
      joined.push(next.term);
    }
    looked.push(next);
  }
  return { joined, looked };
}
