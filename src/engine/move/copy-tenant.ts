/** Copies a tenant from the source of a move to its target, and compares the two copies. */

import { createHash } from 'node:crypto';
import { memoryNosAfter } from '../admin/rebuild-text.ts';
import { EngineError } from '../errors.ts';
import type { Store } from '../store/open-store.ts';
import { createDigest, digestOf, type RowReader, type TableDigest } from '../store/postgres/moved-rows.ts';
import { COPIED_TABLES } from '../store/postgres/moved-tenant.ts';
import { MOVED_TABLES, WORD_SIZES, type MovedColumn, type MovedColumns } from '../store/postgres/moved-tables.ts';
import { listNamedUploads, type UploadPart } from '../store/upload-parts.ts';
import { indexTextOf } from '../store/word-index/memory-text.ts';
import { joinSomeText } from '../store/word-index/merges.ts';
import type { MovedTenant } from './places.ts';

/** Columns of the table with the word count of each memory in the word index. */
const SIZE_COLUMNS: readonly MovedColumn[] = [
  { name: 'id', type: 'bigint' },
  { name: 'sz', type: 'bytea' },
];

/** Called with the number of rows that were copied, compared or indexed since the last call. */
export type OnRows = (rows: number) => void;

/**
 * Returns the number of rows that `copyTenant` and `compareTenants` report to `onRows` together, for a progress bar:
 * each row twice, and each memory a third time.
 */
export function countWork({ rows }: MovedTenant): number {
  const all = COPIED_TABLES.reduce((sum, table) => sum + rows.count(table), 0);
  // Each row is copied and compared, and each memory indexed.
  return 2 * all + rows.count('memories');
}

/** A hash and a row count of each table of a tenant, by the table's name. */
export type TenantDigests = ReadonlyMap<string, TableDigest>;

/**
 * Copies a tenant: all rows, and the uploaded files that are still kept, of documents that wait to be read or could not
 * be read. The word index is not copied but built anew from the texts.
 * @returns a digest of each table, computed from the rows as they were read
 */
export function copyTenant(
  from: MovedTenant,
  to: MovedTenant,
  { columns, onRows }: { readonly columns: MovedColumns; readonly onRows: OnRows },
): TenantDigests {
  to.rows.begin(MOVED_TABLES);
  const digests = new Map<string, TableDigest>();
  for (const table of COPIED_TABLES) {
    const of = columnsOf(columns, table);
    const digest = createDigest(of);
    for (const rows of from.rows.read(table, of)) {
      to.rows.write(table, of, rows);
      digest.add(rows);
      onRows(rows.length);
    }
    digests.set(table, digest.result());
  }
  indexWords(from, to, onRows);
  to.rows.end();
  copyUploads(from, to);
  return digests;
}

/**
 * Builds the word index of the copy. The texts are read from the side that is a file, if there is one, where a read
 * costs no round trip.
 */
function indexWords(from: MovedTenant, to: MovedTenant, onRows: OnRows): void {
  const texts: Store = from.place === null ? from.store : to.store;
  for (let after = 0; ;) {
    const memoryNos = memoryNosAfter(texts, after);
    const last = memoryNos.at(-1);
    if (last === undefined) break;
    to.store.write(() => indexTextOf(to.store, texts, memoryNos));
    onRows(memoryNos.length);
    after = last;
  }
  while (joinSomeText(to.store));
}

function copyUploads(from: MovedTenant, to: MovedTenant): void {
  for (const name of listNamedUploads(from.store)) {
    for (const part of from.readUpload(name)) to.writeUpload(part);
  }
}

/**
 * Compares the copy with the original: the rows of each table, the word counts of the word index, and the uploaded
 * files.
 * @param options.digests digests of the original, from `copyTenant`
 * @throws EngineError `internal` for a table or an uploaded file that differs; `unprocessable` if the word index of the
 *   original does not match its texts
 */
export function compareTenants(
  from: MovedTenant,
  to: MovedTenant,
  options: { readonly columns: MovedColumns; readonly digests: TenantDigests; readonly onRows: OnRows },
): void {
  for (const table of COPIED_TABLES) {
    const found = digestOf(counted(to.rows, options.onRows), table, columnsOf(options.columns, table));
    requireEqual(table, options.digests.get(table)!, found);
  }
  if (!haveEqualWords(from, to)) {
    throw new EngineError(
      'unprocessable',
      'the word index is not what the texts give: run `cairn rebuild-index` on the files and move again' +
        (from.place === null ? '' : ' (to files first)'),
    );
  }
  for (const name of listNamedUploads(from.store)) {
    if (hashOf(from.readUpload(name)) !== hashOf(to.readUpload(name)))
      throw new EngineError('internal', 'a file of a document that waits is not equal after the copy');
  }
}

/** Tells whether the word indexes of two copies have as many words of each memory, in each of its columns. */
export function haveEqualWords(from: MovedTenant, to: MovedTenant): boolean {
  const [one, other] = [from, to].map(({ rows }) => digestOf(rows, WORD_SIZES, SIZE_COLUMNS));
  return one!.rows === other!.rows && one!.hash === other!.hash;
}

/**
 * Throws EngineError `internal`, which names the table, if two digests of it differ.
 * @param other digest of the copy; undefined if it has no such table
 */
export function requireEqual(table: string, one: TableDigest, other: TableDigest | undefined): void {
  if (one.rows === other?.rows && one.hash === other.hash) return;
  throw new EngineError(
    'internal',
    `table ${table} is not equal after the copy (${one.rows} rows, ${other?.rows ?? 0} in it): nothing is changed`,
    { cause: new Error('the copy differs') },
  );
}

function counted(rows: RowReader, onRows: OnRows): RowReader {
  return {
    ...rows,
    *read(table, columns) {
      for (const set of rows.read(table, columns)) {
        onRows(set.length);
        yield set;
      }
    },
  };
}

function columnsOf(columns: MovedColumns, table: string): readonly MovedColumn[] {
  const found = columns.get(table);
  if (found === undefined) throw new EngineError('internal', `PostgreSQL has no table ${table}`);
  return found;
}

function hashOf(parts: Iterable<UploadPart>): string {
  const hash = createHash('sha256');
  for (const { data } of parts) hash.update(data);
  return hash.digest('hex');
}
