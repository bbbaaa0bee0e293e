/** Reads and writes the rows of a tenant's SQLite file for `cairn move`. */

import { EngineError } from '../../errors.ts';
import { MAX_ADDRESS_BYTES } from '../documents.ts';
import type { SqliteStore } from '../open-store.ts';
import { inSets, type MovedRow, type RowReader, type RowWriter } from './moved-rows.ts';
import { MOVED_TABLES, NUMBERS, type MovedColumn, type MovedColumns } from './moved-tables.ts';

/** Number of pages in the write-ahead log after which SQLite makes a checkpoint while a copy is written: 16 MB. */
const CHECKPOINT_PAGES = 4_000;

/** Makes the reader of a file's rows. */
function readFileRows({ db }: Pick<SqliteStore, 'db'>): RowReader {
  return {
    count: (table) =>
      db
        .prepare(`SELECT count(*) FROM ${sourceOf(table)}`)
        .pluck()
        .get() as number,
    *read(table, columns) {
      const names = columns.map(({ name }) => nameIn(table, name)).join(', ');
      const rows = db
        .prepare(`SELECT ${names} FROM ${sourceOf(table)}`)
        .raw()
        .iterate();
      yield* inSets(rows as Iterable<MovedRow>);
    },
  };
}

/** Makes the writer of a new file's rows. The file must not contain any data of a tenant yet. */
export function writeFileRows({ db }: Pick<SqliteStore, 'db'>): RowWriter {
  let triggers: { readonly sql: string }[] = [];
  return {
    ...readFileRows({ db }),
    begin(tables) {
      db.pragma('foreign_keys = OFF');
      db.pragma('synchronous = NORMAL');
      db.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
      // The rows are complete: nothing may follow from their being written.
      const found = db.prepare(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'`).all();
      triggers = found as { name: string; sql: string }[];
      db.transaction(() => {
        for (const { name } of found as { name: string }[]) db.exec(`DROP TRIGGER "${name}"`);
        for (const table of tables) db.exec(`DELETE FROM "${table}"`);
        db.exec('DELETE FROM sqlite_sequence');
      })();
    },
    write(table, columns, rows) {
      const names = columns.map(({ name }) => nameIn(table, name));
      db.transaction(() => {
        // Rows with a number have left one here.
        if (table === NUMBERS) db.exec('DELETE FROM sqlite_sequence');
        const insert = db.prepare(
          `INSERT INTO ${tableOf(table)} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
        );
        for (const row of rows) insert.run(...row);
      })();
    },
    end() {
      db.transaction(() => triggers.forEach(({ sql }) => db.exec(sql)))();
      const broken = db.pragma('foreign_key_check') as unknown[];
      if (broken.length > 0) throw new EngineError('internal', `${broken.length} rows refer to rows that are missing`);
      db.pragma('synchronous = FULL');
      db.pragma('wal_checkpoint(TRUNCATE)');
    },
  };
}

const tableOf = (table: string) => (table === NUMBERS ? 'sqlite_sequence' : `"${table}"`);
const nameIn = (table: string, column: string) => (table === NUMBERS && column === 'last' ? 'seq' : `"${column}"`);

/**
 * Returns what follows FROM to read a copied table. For `NUMBERS`, which has the last row number of each table, this
 * ends with a WHERE that leaves out tables which are not copied, such as those of the word index.
 */
function sourceOf(table: string): string {
  if (table !== NUMBERS) return `"${table}"`;
  return `sqlite_sequence WHERE name IN (${MOVED_TABLES.map((name) => `'${name}'`).join(', ')})`;
}

/**
 * Checks that the copied tables have the same columns in this file and in PostgreSQL.
 * @throws EngineError `unprocessable` for a column that exists on one side only, since its values would be lost
 */
export function requireSameColumns({ db }: Pick<SqliteStore, 'db'>, columns: MovedColumns): void {
  for (const table of MOVED_TABLES) {
    const own = db.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(table) as string[];
    const theirs = (columns.get(table) ?? []).map(({ name }: MovedColumn) => name);
    const lost = [...own, ...theirs].filter((name) => !own.includes(name) || !theirs.includes(name));
    if (lost.length === 0) continue;
    throw new EngineError(
      'unprocessable',
      `table ${table} has other columns in files than in PostgreSQL (${lost.join(', ')}): nothing is moved`,
    );
  }
}

/** Matches an escaped U+0000 in JSON, whose backslash is not itself escaped. */
const ZERO = /(?<!\\)(?:\\\\)*\\u0000/;

/**
 * Counts the memories with the character U+0000 in their tags or files, which PostgreSQL's JSON functions cannot read.
 */
export function countZeroLabels({ db }: Pick<SqliteStore, 'db'>): number {
  const rows = db
    .prepare(`SELECT tags || files FROM memories WHERE instr(tags, '\\u0000') > 0 OR instr(files, '\\u0000') > 0`)
    .pluck()
    .iterate();
  let found = 0;
  for (const labels of rows as Iterable<string>) if (ZERO.test(labels)) found += 1;
  return found;
}

/**
 * Counts the pages without an external id whose user and URL are longer together than a request may make them: an entry
 * of an index may not hold them. Only an earlier version has accepted such pages.
 */
export function countLongAddresses({ db }: Pick<SqliteStore, 'db'>): number {
  const found = db.prepare(
    `SELECT count(*) FROM documents
     WHERE external_id = '' AND url <> '' AND octet_length(user_id) + octet_length(url) > ?`,
  );
  return found.pluck().get(MAX_ADDRESS_BYTES) as number;
}
