/**
 * Writes the word index of a tenant in PostgreSQL. Changes of rows are collected in memory and stored shortly before
 * the commit by a few statements, however many rows change: one reads the rows that are replaced, one reads the blocks
 * that change, and one writes each table.
 */

import type { Store } from '../open-store.ts';
import { allVarints } from '../word-index/structure.ts';
import type { WordTable } from '../word-table.ts';
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
import type { Parameter, QueryResult } from './connection-messages.ts';

/**
 * Runs SQL that is written for PostgreSQL and not translated. `$1` is the tenant's number; the given values begin at
 * `$2`.
 */
export interface OwnQuery {
  readonly ask: (name: string, text: string, values: readonly Parameter[]) => QueryResult;
  /**
   * Asks in the round trip of the next query; outside of a transaction, at once.
   * @returns a function that returns the answer, to be called in the same transaction
   */
  readonly askLater: (name: string, text: string, values: readonly Parameter[]) => () => QueryResult;
  /** Lets a statement wait that is sent with a later one. Call inside a write. */
  readonly write: (name: string, text: string, values: readonly Parameter[]) => void;
}

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
const READ_JOINED = `SELECT joined FROM word_totals WHERE tenant = $1`;
const READ_BLOCKS = `SELECT w.place, b.data
  FROM unnest($2::text[], $3::bigint[]) WITH ORDINALITY AS w (term, block, place)
  CROSS JOIN LATERAL (SELECT data FROM word_blocks
    WHERE tenant = $1 AND term = w.term AND block = w.block LIMIT 1) AS b`;
/** Reads rows of ranges whose blocks were joined. A term that is in one block only may have a row of its own. */
const READ_OLD_BLOCKS = `SELECT b.term, b.block, b.data, b.parts
  FROM unnest($2::text[], $3::bigint[]) AS w (term, first)
  CROSS JOIN LATERAL (SELECT term, block, data, parts FROM word_blocks
    WHERE tenant = $1 AND term = w.term AND block >= w.first AND block < w.first + ${JOINED_BLOCKS}) AS b`;
const WRITE_BLOCKS = `INSERT INTO word_blocks (tenant, term, block, rows, data, parts)
  SELECT $1, w.* FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bytea[], $6::text[]) AS w
  ON CONFLICT (tenant, term, block)
    DO UPDATE SET rows = excluded.rows, data = excluded.data, parts = excluded.parts`;
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
  UPDATE word_totals SET rows = 0, terms = 0, joined = 0 WHERE tenant = $1`;
const JOIN_BLOCKS = 'SELECT join_word_blocks($1, $2::bigint)';

/** Number of memories whose blocks are joined at once. */
const JOINED_ROWS = JOINED_BLOCKS * BLOCK_ROWS;
/** Number of the newest memories whose blocks are never joined, since they still change at times. */
const NEW_ROWS = 2_048;

export interface WordTableOptions {
  /** Returns the tenant's store. It is a function, since the store is created later. */
  readonly store: () => Store;
  readonly own: OwnQuery;
}

/** Makes the word index of a tenant; `own` runs statements for that tenant. */
export function createWordTable({ store, own }: WordTableOptions): WordTable {
  /** Changes since the last flush, by memory number: the new row, or null for a deleted row. */
  const pending = new Map<number, EncodedRow | null>();
  const flush = () => {
    if (pending.size === 0) return;
    const rows = new Map(pending);
    pending.clear();
    writeRows(own, rows);
  };
  const note = (memoryNo: number, row: EncodedRow | null) => {
    pending.set(memoryNo, row);
    store().beforeCommit(flush);
  };
  return {
    put: (memoryNo, columns) => note(memoryNo, encodeRow(columns)),
    delete: (memoryNo) => note(memoryNo, null),
    clear() {
      pending.clear();
      own.write('words-clear', CLEAR, []);
    },
    flush,
    forget: () => pending.clear(),
  };
}

function writeRows(own: OwnQuery, rows: ReadonlyMap<number, EncodedRow | null>): void {
  const joined = own.askLater('words-joined', READ_JOINED, []);
  const before = new Map(readStored(own, [...rows.keys()]).map((row) => [row[0], row]));
  const joinedRanges = joined().rows[0]![0] as number;
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
    for (const [term, positions] of row?.terms ?? []) change(term, memoryNo, positions);
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
  if (addedRows !== 0 || addedTerms !== 0) own.write('words-totals', ADD_TOTALS, [addedRows, addedTerms]);
  const last = put.reduce((highest, [memoryNo]) => Math.max(highest, memoryNo), 0);
  if (last >= JOINED_ROWS * (joinedRanges + 1) + NEW_ROWS) own.write('words-join', JOIN_BLOCKS, [joinedRanges]);
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

/** @param joined number of ranges whose blocks were joined */
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
      encoded.map(({ data }) => data),
      encoded.map(({ parts }) => parts),
    ]);
  }
  const emptied = changed.filter(({ rows }) => rows.size === 0);
  if (emptied.length > 0) {
    own.write('words-emptied', DELETE_BLOCKS, [emptied.map(({ term }) => term), emptied.map(({ block }) => block)]);
  }
}

/** Reads the blocks that change, or makes empty ones. */
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

/** Reads the rows that change in ranges whose blocks were joined, or makes empty ones, of one block. */
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
