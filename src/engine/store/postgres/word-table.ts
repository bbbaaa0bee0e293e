/**
 * Writes the word index of a tenant in PostgreSQL. Changes of rows are collected in memory and stored shortly before
 * the commit by a few statements, however many rows change. New memories take one statement (`append-words.ts`). For
 * others, one statement reads the rows that are replaced, one reads the blocks that change, and one writes each table.
 */

import type { Store } from '../open-store.ts';
import { allVarints } from '../word-index/structure.ts';
import type { WordTable } from '../word-table.ts';
import { appendRows, type NumberedRow } from './append-words.ts';
import {
  BLOCK_ROWS,
  decodeBlock,
  encodeBlock,
  encodeJoined,
  encodeRow,
  firstJoined,
  JOINED_BLOCKS,
  type BlockRows,
  type EncodedRow,
} from './block-codec.ts';
import { createBlockJoiner } from './join-blocks.ts';
import type { OwnQuery } from './own-query.ts';

/** The changes in one block (256 memory numbers) of one term's postings. */
interface BlockChange {
  readonly term: string;
  readonly block: number;
  /** New encoded positions of the term in each changed row, by memory number; null for a row that loses the term. */
  readonly rows: Map<number, Uint8Array | null>;
}

/**
 * A stored row that is replaced or deleted: its memory number, its distinct terms joined by spaces, and its number of
 * terms.
 */
type StoredRow = readonly [id: number, terms: string, length: number];

const READ_ROWS = `SELECT r.id, r.terms, d.sz FROM word_rows r
  JOIN memory_text_docsize d ON d.tenant = $1 AND d.id = r.id WHERE r.tenant = $1 AND r.id = ANY ($2::bigint[])`;
const READ_NEWEST = `SELECT newest FROM word_totals WHERE tenant = $1`;
const READ_JOINED = `SELECT joined FROM word_totals WHERE tenant = $1`;
const READ_BLOCKS = `SELECT w.place, b.data
  FROM unnest($2::text[], $3::bigint[]) WITH ORDINALITY AS w (term, block, place)
  CROSS JOIN LATERAL (SELECT data FROM word_blocks
    WHERE tenant = $1 AND term = w.term AND block = w.block LIMIT 1) AS b`;
/**
 * Reads rows of ranges whose blocks were joined, or are being joined. A term that is in one block only, or was not
 * joined yet, has rows of its own.
 */
const READ_OLD_BLOCKS = `SELECT b.term, b.block, b.data, b.parts
  FROM unnest($2::text[], $3::bigint[]) AS w (term, first)
  CROSS JOIN LATERAL (SELECT term, block, data, parts FROM word_blocks
    WHERE tenant = $1 AND term = w.term AND block >= w.first AND block < w.first + ${JOINED_BLOCKS}) AS b`;
const WRITE_BLOCKS = `INSERT INTO word_blocks (tenant, term, block, rows, last, data, parts)
  SELECT $1, w.* FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[], $7::text[]) AS w
  ON CONFLICT (tenant, term, block)
    DO UPDATE SET rows = excluded.rows, last = excluded.last, data = excluded.data, parts = excluded.parts`;
const DELETE_BLOCKS = `DELETE FROM word_blocks b USING unnest($2::text[], $3::bigint[]) AS w (term, block)
  WHERE b.tenant = $1 AND b.term = w.term AND b.block = w.block`;
const WRITE_ROWS = `WITH sizes AS (
    INSERT INTO memory_text_docsize (tenant, id, sz) SELECT $1, w.* FROM unnest($2::bigint[], $3::bytea[]) AS w
    ON CONFLICT (tenant, id) DO UPDATE SET sz = excluded.sz)
  INSERT INTO word_rows (tenant, id, terms) SELECT $1, w.* FROM unnest($2::bigint[], $4::text[]) AS w
  ON CONFLICT (tenant, id) DO UPDATE SET terms = excluded.terms`;
const DELETE_ROWS = `WITH sizes AS (DELETE FROM memory_text_docsize WHERE tenant = $1 AND id = ANY ($2::bigint[]))
  DELETE FROM word_rows WHERE tenant = $1 AND id = ANY ($2::bigint[])`;
const ADD_TOTALS = `UPDATE word_totals SET rows = rows + $2::bigint, terms = terms + $3::bigint WHERE tenant = $1`;
const CLEAR = `WITH blocks AS (DELETE FROM word_blocks WHERE tenant = $1),
    sizes AS (DELETE FROM memory_text_docsize WHERE tenant = $1), stored AS (DELETE FROM word_rows WHERE tenant = $1)
  UPDATE word_totals SET rows = 0, terms = 0, joined = 0, joining = NULL, joining_terms = 0, newest = 0
    WHERE tenant = $1`;

export interface WordTableOptions {
  /** Returns the tenant's store. It is a function, since the store is created later. */
  readonly store: () => Store;
  readonly own: OwnQuery;
  /** Returns the greatest number of a memory that the index had, or has had, when the present write began. */
  readonly newestBefore: () => number;
}

/** Makes what writes the word index of a tenant. */
export function createWordTable({ store, own, newestBefore }: WordTableOptions): WordTable {
  /** Changes since the last flush, by memory number: the new row, or null for a deleted row. */
  const pending = new Map<number, EncodedRow | null>();
  /** Keys of the terms of the pending rows, by which `put` counts how many a row adds. */
  const pendingTerms = new Set<string>();
  const dropPending = () => {
    pending.clear();
    pendingTerms.clear();
  };
  /**
   * The last write that flushed new memories or cleared the index, and what the greatest number of a memory has been
   * since then; null for the number if a part of the write was undone.
   */
  let flushed: { readonly transactionNo?: number | undefined; readonly newest: number | null } = { newest: 0 };
  const newestNow = () => {
    if (flushed.transactionNo !== store().transactionNo) return newestBefore();
    return flushed.newest ?? (own.ask('words-newest', READ_NEWEST, []).rows[0]![0] as number);
  };
  const flush = () => {
    if (pending.size === 0) return;
    const rows = [...pending];
    dropPending();
    const newest = newestNow();
    const changed = rows.filter(([memoryNo]) => memoryNo <= newest);
    if (changed.length > 0) writeRows(own, new Map(changed));
    const added = rows.filter((entry): entry is [number, EncodedRow] => entry[0] > newest && entry[1] !== null);
    if (added.length === 0) return;
    const ascending: NumberedRow[] = added.sort(([a], [b]) => a - b);
    appendRows(own, ascending);
    const [last] = ascending.at(-1)!;
    flushed = { transactionNo: store().transactionNo, newest: last };
  };
  const note = (memoryNo: number, row: EncodedRow | null) => {
    pending.set(memoryNo, row);
    store().beforeCommit(flush);
  };
  const joiner = createBlockJoiner(own);
  return {
    put(memoryNo, columns) {
      const row = encodeRow(columns);
      note(memoryNo, row);
      const before = pendingTerms.size;
      for (const term of row.terms.keys()) pendingTerms.add(term);
      return pendingTerms.size - before;
    },
    delete: (memoryNo) => note(memoryNo, null),
    clear() {
      dropPending();
      own.write('words-clear', CLEAR, []);
      flushed = { transactionNo: store().transactionNo, newest: 0 };
    },
    flush,
    forget() {
      dropPending();
      flushed = { ...flushed, newest: null };
    },
    hasBlocksToJoin: joiner.hasMore,
    joinBlocks: joiner.joinSome,
  };
}

function writeRows(own: OwnQuery, rows: ReadonlyMap<number, EncodedRow | null>): void {
  const joined = own.askLater('words-joined', READ_JOINED, []);
  const before = new Map(readStored(own, [...rows.keys()]).map((row) => [row[0], row]));
  const joinedRanges = joined.result().rows[0]![0] as number;
  const changes = new Map<string, BlockChange>();
  const change = (term: string, memoryNo: number, positions: Uint8Array | null) => {
    const block = Math.floor(memoryNo / BLOCK_ROWS);
    const name = `${block} ${term}`;
    let found = changes.get(name);
    if (found === undefined) changes.set(name, (found = { term, block, rows: new Map() }));
    found.rows.set(memoryNo, positions);
  };
  let [addedRows, addedTerms] = [0, 0];
  for (const [memoryNo, row] of rows) {
    const [, terms = '', length = 0] = before.get(memoryNo) ?? [];
    for (const term of terms === '' ? [] : terms.split(' ')) if (!row?.terms.has(term)) change(term, memoryNo, null);
    for (const [term, { bytes }] of row?.terms ?? []) change(term, memoryNo, Uint8Array.from(bytes));
    addedRows += Number(row !== null) - Number(before.has(memoryNo));
    addedTerms += (row?.length ?? 0) - length;
  }
  writeBlocks(own, [...changes.values()], joinedRanges);
  const put = [...rows].filter((entry): entry is [number, EncodedRow] => entry[1] !== null);
  if (put.length > 0) {
    own.write('words-rows', WRITE_ROWS, [
      put.map(([memoryNo]) => memoryNo),
      put.map(([, { sizes }]) => sizes),
      put.map(([, { terms }]) => [...terms.keys()].join(' ')),
    ]);
  }
  const gone = [...rows.keys()].filter((memoryNo) => rows.get(memoryNo) === null && before.has(memoryNo));
  if (gone.length > 0) own.write('words-rows-gone', DELETE_ROWS, [gone]);
  // Even where the totals stay as they were: each change of the words changes their row, by which readers notice it.
  own.write('words-totals', ADD_TOTALS, [addedRows, addedTerms]);
}

function readStored(own: OwnQuery, memoryNos: readonly number[]): StoredRow[] {
  return own.ask('words-stored', READ_ROWS, [memoryNos]).rows.map((row) => {
    const [id, terms, sizes] = row as [number, string, Uint8Array];
    return [id, terms, allVarints(sizes).reduce((sum, size) => sum + size, 0)];
  });
}

/** A row of `word_blocks` with its content; `isJoined` tells whether it has several blocks. */
interface StoredBlock {
  readonly term: string;
  readonly block: number;
  readonly isJoined: boolean;
  readonly rows: BlockRows;
}

/**
 * Applies the changes to the stored blocks: reads the rows of the table that hold them, and queues the statements that
 * write them again, or delete them if they have become empty.
 * @param joined number of ranges of blocks that were joined, from the first; the last may be being joined
 */
function writeBlocks(own: OwnQuery, changes: readonly BlockChange[], joined: number): void {
  if (changes.length === 0) return;
  const isOld = ({ block }: BlockChange) => block < JOINED_BLOCKS * joined;
  const [old = [], young = []] = [true, false].map((is) => changes.filter((change) => isOld(change) === is));
  const stored = [...readYoung(own, young), ...readOld(own, old)];
  for (const [change, { rows }] of stored) {
    for (const [memoryNo, positions] of change.rows) {
      if (positions === null) rows.delete(memoryNo);
      else rows.set(memoryNo, positions);
    }
  }
  const changed = [...new Set(stored.map(([, block]) => block))];
  const written = changed.filter(({ rows }) => rows.size > 0);
  if (written.length > 0) {
    const encoded = written.map(({ rows, isJoined }) =>
      isJoined ? encodeJoined(rows) : { data: encodeBlock(rows), parts: '' },
    );
    own.write('words-write', WRITE_BLOCKS, [
      written.map(({ term }) => term),
      written.map(({ block }) => block),
      written.map(({ rows }) => rows.size),
      written.map(({ rows }) => Math.max(...rows.keys())),
      encoded.map(({ data }) => data),
      encoded.map(({ parts }) => parts),
    ]);
  }
  const emptied = changed.filter(({ rows }) => rows.size === 0);
  if (emptied.length > 0) {
    own.write('words-emptied', DELETE_BLOCKS, [emptied.map(({ term }) => term), emptied.map(({ block }) => block)]);
  }
}

/** Reads the blocks that change, outside of the joined ranges; a block that is not stored is empty. */
function readYoung(own: OwnQuery, changes: readonly BlockChange[]): [BlockChange, StoredBlock][] {
  if (changes.length === 0) return [];
  const places = [changes.map(({ term }) => term), changes.map(({ block }) => block)] as const;
  const stored = new Map(own.ask('words-read', READ_BLOCKS, places).rows as [number, Uint8Array][]);
  return changes.map((change, at) => {
    const bytes = stored.get(at + 1);
    const rows: BlockRows = bytes === undefined ? new Map() : decodeBlock(bufferOf(bytes), '');
    return [change, { term: change.term, block: change.block, isJoined: false, rows }];
  });
}

/**
 * Reads the rows of the table that hold the changing blocks in ranges whose blocks were joined. A block that is not
 * stored becomes an empty row of one block.
 */
function readOld(own: OwnQuery, changes: readonly BlockChange[]): [BlockChange, StoredBlock][] {
  if (changes.length === 0) return [];
  const nameOf = (term: string, block: number) => `${block} ${term}`;
  const ranges = [...Map.groupBy(changes, ({ term, block }) => nameOf(term, firstJoined(block))).values()];
  const answer = own.ask('words-read-old', READ_OLD_BLOCKS, [
    ranges.map(([change]) => change!.term),
    ranges.map(([change]) => firstJoined(change!.block)),
  ]);
  const stored = new Map(
    (answer.rows as [string, number, Uint8Array, string][]).map(([term, block, data, parts]): [string, StoredBlock] => {
      return [nameOf(term, block), { term, block, isJoined: parts !== '', rows: decodeBlock(bufferOf(data), parts) }];
    }),
  );
  return changes.map((change) => {
    const { term, block } = change;
    const first = stored.get(nameOf(term, firstJoined(block)));
    const found = first?.isJoined === true ? first : stored.get(nameOf(term, block));
    return [change, found ?? { term, block, isJoined: false, rows: new Map() }];
  });
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
