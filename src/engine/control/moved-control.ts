/** The part of the control database that `cairn move` copies: tenants with their keys, settings, limits and servers. */

import { createDigest, type MovedRow, type TableDigest } from '../store/postgres/moved-rows.ts';
import type { ControlFile } from './control-file.ts';
import { NO_MARK } from './moved-marks.ts';

const OF_TENANTS = 'tenant_id IN (SELECT value FROM json_each(?))';

/**
 * Tables of the control database in the order in which `cairn move` copies them. The value is the SQL condition that
 * selects the rows of the moved tenants, with a JSON list of their ids as its parameter; null for a table that is
 * copied only when all tenants are moved together.
 */
export const CONTROL_TABLES: Readonly<Record<string, string | null>> = {
  tenants: 'id IN (SELECT value FROM json_each(?))',
  keys: `id IN (SELECT key_id FROM key_tenants WHERE ${OF_TENANTS})`,
  key_tenants: OF_TENANTS,
  settings: OF_TENANTS,
  limits: OF_TENANTS,
  federation_servers: OF_TENANTS,
  sessions: null,
  audit: null,
  store_info: null,
};

/** Tables of the control database that `cairn move` does not copy, each with the reason. */
export const CONTROL_NOT_COPIED: Readonly<Record<string, string>> = {
  access_generation: 'a number of changes, which each place counts for itself',
  data_keys: 'the keys of encrypted files, which are not moved',
};

/**
 * Columns of keys that change. A key that reaches several tenants may have other values at the source than at the
 * target, if one of the tenants was moved before.
 */
const CHANGING = new Set(['last_used_at', 'revoked_at']);
/** What becomes of a key that the target has: the later use counts, and the first revocation at either place. */
const JOINED_KEY = `(id) DO UPDATE SET
  last_used_at = coalesce(max(keys.last_used_at, excluded.last_used_at), excluded.last_used_at, keys.last_used_at),
  revoked_at = coalesce(min(keys.revoked_at, excluded.revoked_at), excluded.revoked_at, keys.revoked_at)`;

/** The tenants that are moved, and whether they are all of them. */
export interface MovedSelection {
  readonly tenants: readonly string[];
  /** Whether all tenants are moved together, so that the sessions and the audit log of the service are moved too. */
  readonly isWhole: boolean;
}

/** Lists the ids of the tenants of a control database, without those that were moved away. */
export function listPresentTenants(file: ControlFile): string[] {
  return file.statements.listTenants.all().map(({ id }) => id);
}

/** Lists the ids of the selected tenants that have a limit `max_mb`, which PostgreSQL does not support. */
export function listSizeLimits(file: ControlFile, { tenants }: MovedSelection): string[] {
  const statement = file.prepare(
    `SELECT DISTINCT tenant_id FROM limits WHERE name = 'max_mb' AND value > 0 AND ${OF_TENANTS} ORDER BY tenant_id`,
  );
  return statement.pluck().all(JSON.stringify(tenants)) as string[];
}

/** Column names by the name of the table. */
export type ControlColumns = ReadonlyMap<string, readonly string[]>;

/** Reads the names of the columns of each table that is copied. They are the same in SQLite and in PostgreSQL. */
export function readControlColumns(file: ControlFile): ControlColumns {
  const read = file.prepare(
    file.db === null
      ? 'SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = ?'
      : 'SELECT name FROM pragma_table_info(?)',
  );
  return new Map(Object.keys(CONTROL_TABLES).map((table) => [table, read.pluck().all(table) as string[]]));
}

/**
 * Copies the rows of tenants from one control database to another. A row that `to` already has stays as it is, except
 * for a key that reaches several tenants, of which one was moved before: it gets the later time of its last use, and is
 * revoked if it is revoked in `from`. Call it inside a write of `to`.
 */
export function copyControl(from: ControlFile, to: ControlFile, columns: ControlColumns, what: MovedSelection): void {
  for (const table of tablesOf(what)) {
    const names = columns.get(table)!;
    const insert = to.prepare(
      `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})
       ON CONFLICT ${table === 'keys' ? JOINED_KEY : 'DO NOTHING'}`,
    );
    for (const row of readRows(from, table, names, what)) insert.run(...row);
  }
  if (what.isWhole) copyAuditNumber(from, to);
  to.statements.bumpGeneration.run();
}

/**
 * Returns a digest of the selected rows of each table, by the table's name. For a key that reaches several tenants,
 * only its links to the moved tenants count. When a key was last used, and whether it is revoked, does not count.
 */
export function controlDigests(
  file: ControlFile,
  columns: ControlColumns,
  what: MovedSelection,
): ReadonlyMap<string, TableDigest> {
  return new Map(
    tablesOf(what).map((table) => {
      const names = columns.get(table)!.filter((name) => table !== 'keys' || !CHANGING.has(name));
      const digest = createDigest(names.map((name) => ({ name, type: 'text' })));
      digest.add(readRows(file, table, names, what));
      return [table, digest.result()];
    }),
  );
}

function tablesOf({ isWhole }: MovedSelection): string[] {
  return Object.keys(CONTROL_TABLES).filter((table) => isWhole || CONTROL_TABLES[table] !== null);
}

function readRows(file: ControlFile, table: string, names: readonly string[], what: MovedSelection): MovedRow[] {
  const condition = CONTROL_TABLES[table] ?? null;
  const where = condition ?? (table === 'store_info' ? NO_MARK : '1 = 1');
  const statement = file.prepare(`SELECT ${names.join(', ')} FROM ${table} WHERE ${where}`).raw();
  return statement.all(...(condition === null ? [] : [JSON.stringify(what.tenants)])) as MovedRow[];
}

/** Copies the highest record number that the audit log has given. It shows later if records at the end were removed. */
function copyAuditNumber(from: ControlFile, to: ControlFile): void {
  const number = from.prepare(`SELECT seq FROM sqlite_sequence WHERE name = 'audit'`).pluck().get() as
    number | undefined;
  if (number === undefined) return;
  const { changes } = to.prepare(`UPDATE sqlite_sequence SET seq = ? WHERE name = 'audit'`).run(number);
  if (changes === 0) to.prepare(`INSERT INTO sqlite_sequence (name, seq) VALUES ('audit', ?)`).run(number);
}
