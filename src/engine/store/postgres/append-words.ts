/**
 * Puts new rows into the word index of a tenant by one statement that reads nothing: the server appends them to the
 * blocks that are there, and inserts the others. It is for rows of memories above all those of the index, whose places
 * are at the ends of the blocks.
 */

import { BLOCK_ROWS, putVarint, type EncodedRow } from './block-codec.ts';
import type { OwnQuery } from './own-query.ts';

/** A row of the word index with the number of its memory. */
export type NumberedRow = readonly [memoryNo: number, row: EncodedRow];

/** New rows of a term in one block. */
interface Addition {
  readonly term: string;
  rows: number;
  /** Number of the memory of the first of the rows. */
  readonly first: number;
  /** Number of the memory of the last of the rows. */
  last: number;
  /** The encoded rows as a block has them, but without the memory number of the first one. */
  readonly bytes: number[];
}

/**
 * SQL that writes new rows. `$2` has the terms with blanks between them, and `$8` the bytes of all additions one after
 * the other: a list of texts or bytes takes several times as long to read. The number of the block is computed first,
 * since a condition that calls a function is none of the index; `OFFSET 0` keeps it so. `varint` writes the number of a
 * first row as the difference to the row before it, or whole in a new block.
 *
 * Each addition looks its block up, and the update then takes the block from its place (`ctid`). The condition on the
 * number of the block is always true: it makes the server expect a single row of `added`. Without it the server expects
 * ten. While it has no statistics, ten reads by place then seem dearer to it than all blocks of the tenant, each
 * compared with each addition: a text of 20,000 different terms took more than a minute.
 */
const APPEND = `WITH added AS MATERIALIZED (
    SELECT a.*, b.place, b.before FROM (
      SELECT term, first / ${BLOCK_ROWS} AS block, rows, first, last, till, size
      FROM unnest(string_to_array($2, ' '), $3::bigint[], $4::bigint[], $5::bigint[], $6::int[], $7::int[])
        AS r (term, rows, first, last, till, size)
      OFFSET 0
    ) AS a
    LEFT JOIN LATERAL (SELECT ctid AS place, last AS before FROM word_blocks
      WHERE tenant = $1 AND term = a.term AND block = a.block LIMIT 1) AS b ON true
  ), appended AS (
    UPDATE word_blocks AS b
    SET rows = b.rows + a.rows, last = a.last,
      data = b.data || varint(a.first - a.before) || substr($8::bytea, a.till - a.size + 1, a.size)
    FROM added AS a WHERE b.ctid = a.place AND b.tenant = $1 AND a.block = a.first / ${BLOCK_ROWS}
  ), sizes AS (
    INSERT INTO memory_text_docsize (tenant, id, sz)
    SELECT $1, r.id, substr($10::bytea, r.till - r.size + 1, r.size)
    FROM unnest($9::bigint[], $11::int[], $12::int[]) AS r (id, till, size)
  ), stored AS (
    INSERT INTO word_rows (tenant, id, terms)
    -- Of a single row without terms the text is empty, and so is the array.
    SELECT $1, r.id, coalesce(r.terms, '') FROM unnest($9::bigint[], string_to_array($13, E'\\n')) AS r (id, terms)
  ), counted AS (
    UPDATE word_totals SET rows = rows + cardinality($9::bigint[]), terms = terms + $14::bigint, newest = $15::bigint
    WHERE tenant = $1
  )
  INSERT INTO word_blocks (tenant, term, block, rows, last, data)
  SELECT $1, term, block, rows, last, varint(first) || substr($8::bytea, till - size + 1, size)
  FROM added WHERE place IS NULL`;

/**
 * Queues the statement that writes new rows, with their sizes and the totals. Call it inside a write.
 * @param rows rows of memories with ascending numbers, all above those that the index has or has had; at least one
 */
export function appendRows(own: OwnQuery, rows: readonly NumberedRow[]): void {
  const additions = additionsOf(rows);
  const bytes = joined(additions.map((addition) => addition.bytes));
  const sizes = joined(rows.map(([, row]) => row.sizes));
  const values = [
    additions.map(({ term }) => term).join(' '),
    additions.map((addition) => addition.rows),
    additions.map(({ first }) => first),
    additions.map(({ last }) => last),
    bytes.ends,
    bytes.sizes,
    bytes.all,
    rows.map(([memoryNo]) => memoryNo),
    sizes.all,
    sizes.ends,
    sizes.sizes,
    rows.map(([, { terms }]) => [...terms.keys()].join(' ')).join('\n'),
    rows.reduce((sum, [, { length }]) => sum + length, 0),
    rows.at(-1)![0],
  ];
  own.write('words-append', APPEND, values, 'word_blocks');
}

function additionsOf(rows: readonly NumberedRow[]): Addition[] {
  const additions: Addition[] = [];
  let ofBlock = new Map<string, Addition>();
  let block = -1;
  for (const [memoryNo, { terms }] of rows) {
    if (Math.floor(memoryNo / BLOCK_ROWS) !== block) {
      block = Math.floor(memoryNo / BLOCK_ROWS);
      ofBlock = new Map();
    }
    for (const [term, { bytes }] of terms) {
      let addition = ofBlock.get(term);
      if (addition === undefined) {
        addition = { term, rows: 0, first: memoryNo, last: memoryNo, bytes: [] };
        ofBlock.set(term, addition);
        additions.push(addition);
      } else putVarint(addition.bytes, memoryNo - addition.last);
      addition.rows += 1;
      addition.last = memoryNo;
      putVarint(addition.bytes, 2 * bytes.length);
      for (const byte of bytes) addition.bytes.push(byte);
    }
  }
  return additions;
}

/** Concatenates parts of bytes, and lists for each part the offset at which it ends and its size. */
function joined(parts: readonly ArrayLike<number>[]): {
  readonly all: Uint8Array;
  readonly ends: number[];
  readonly sizes: number[];
} {
  let end = 0;
  const ends = parts.map(({ length }) => (end += length));
  const all = new Uint8Array(end);
  for (const [place, part] of parts.entries()) all.set(part, ends[place]! - part.length);
  return { all, ends, sizes: parts.map(({ length }) => length) };
}
