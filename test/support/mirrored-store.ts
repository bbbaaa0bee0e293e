import type { SqliteStore, Store } from '../../src/engine/store/open-store.ts';
import type { Statement } from '../../src/engine/store/statement.ts';
import { openBlockingConnection } from '../../src/engine/store/postgres/blocking-connection.ts';
import type { Catalog } from '../../src/engine/store/postgres/catalog.ts';
import { migrateSchema } from '../../src/engine/store/postgres/migrate-schema.ts';
import { ensureTenant, openPostgresStore, readCatalog } from '../../src/engine/store/postgres/open-postgres-store.ts';

/** What happened to a statement that ran on both database engines. */
interface StatementReport {
  runs: number;
  /** First difference between the two results, or PostgreSQL's error; undefined if there was none. */
  difference?: string;
}

/** Matches statements that use what only SQLite has: the word index, its files, temporary tables, pragmas. */
const SQLITE_ONLY = /memory_text|pragma|PRAGMA|temp\.|TEMP |sqlite_|total_changes|fts5|embedding_cache/;

/**
 * Runs every statement of a test's SQLite stores also on PostgreSQL, where each store has a tenant, and compares the
 * results.
 */
export interface Mirror {
  /** Reports of the statements that ran on both engines, by the text of the statement. */
  readonly statements: ReadonlyMap<string, Readonly<StatementReport>>;
  /** Texts of the statements that ran on SQLite only. */
  readonly sqliteOnly: ReadonlySet<string>;
  /**
   * Changes a store so that each of its statements runs on both engines and the results are compared. Returns the
   * store.
   */
  mirror(store: SqliteStore): SqliteStore;
  close(): void;
}

/** Opens a mirror on the PostgreSQL database at `url`, and creates the schema there. */
export function openMirror(url: string): Mirror {
  const statements = new Map<string, StatementReport>();
  const sqliteOnly = new Set<string>();
  const connections = [openBlockingConnection(url)];
  migrateSchema(connections[0]!);
  const catalog = readCatalog(connections[0]!);
  const begun = new Set<string>();
  return {
    statements,
    sqliteOnly,
    mirror(sqlite) {
      const connection = openBlockingConnection(url);
      connections.push(connection);
      const postgres = openPostgresStore({ connection, catalog, tenant: ensureTenant(connection, sqlite.path) });
      if (!begun.has(sqlite.path)) copyFirstRows(sqlite, postgres, catalog);
      begun.add(sqlite.path);
      return pair(sqlite, postgres, { statements, sqliteOnly });
    },
    close() {
      for (const connection of connections) connection.close();
    },
  };
}

/** Copies the rows that a new file contains, which have random values, so that both engines have the same values. */
function copyFirstRows(sqlite: SqliteStore, postgres: Store, catalog: Catalog): void {
  postgres.write(() => {
    for (const table of ['store_info', 'event_feed']) {
      const columns = [...catalog.get(table)!.columns.keys()].filter((name) => name !== 'tenant');
      postgres.prepare(`DELETE FROM ${table}`).run();
      const insert = `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`;
      const rows = sqlite.db
        .prepare(`SELECT ${columns.join(', ')} FROM ${table}`)
        .raw()
        .all() as unknown[][];
      for (const row of rows) postgres.prepare(insert).run(...row);
    }
  });
}

type Reports = { readonly statements: Map<string, StatementReport>; readonly sqliteOnly: Set<string> };

function pair(sqlite: SqliteStore, postgres: Store, reports: Reports): SqliteStore {
  const prepared = new Map<string, Statement>();
  const { write, read, prepare, close, beforeCommit } = sqlite;
  return Object.assign(sqlite, {
    prepare(sql: string) {
      let both = prepared.get(sql);
      if (both === undefined) prepared.set(sql, (both = pairStatement(sql, prepare(sql), postgres, reports)));
      return both;
    },
    write: <T>(work: () => T): T => write(() => postgres.write(work)),
    read: <T>(work: () => T): T => read(() => postgres.read(work)),
    beforeCommit,
    close() {
      postgres.close();
      close();
    },
  });
}

function pairStatement(sql: string, own: Statement, postgres: Store, reports: Reports): Statement {
  if (SQLITE_ONLY.test(sql)) {
    reports.sqliteOnly.add(sql);
    return own;
  }
  const report: StatementReport = reports.statements.get(sql) ?? { runs: 0 };
  reports.statements.set(sql, report);
  return pairInMode(sql, own, { other: postgres.prepare(sql), postgres, report });
}

/** The statement on PostgreSQL that runs beside a statement on SQLite, and the report on both. */
interface Twin {
  readonly other: Statement;
  readonly postgres: Store;
  readonly report: StatementReport;
}

function pairInMode(sql: string, own: Statement, { other, postgres, report }: Twin): Statement {
  const isOrdered = /ORDER BY/.test(sql) && !/RETURNING/.test(sql);
  const compare = <T>(answer: T, ask: () => unknown): T => {
    report.runs += 1;
    const also = attempt(postgres, sql, ask);
    const [one, two] = [normal(answer, isOrdered), normal(also, isOrdered)];
    if (one !== two) report.difference ??= describeDifference(one, two);
    return answer;
  };
  return {
    run: (...given) => {
      const answer = own.run(...given);
      const isNumbered = /^INSERT (?!OR)/.test(sql) && !/ON CONFLICT|SELECT/.test(sql);
      let also: number | bigint = 0;
      compare(answer.changes, () => {
        const result = other.run(...given);
        also = result.lastInsertRowid;
        return result.changes;
      });
      if (isNumbered && also !== 0 && Number(answer.lastInsertRowid) !== also) {
        report.difference ??= `number ${answer.lastInsertRowid}; PostgreSQL ${also}`;
      }
      return answer;
    },
    get: (...given) => compare(own.get(...given), () => other.get(...given)),
    all: (...given) => compare(own.all(...given), () => other.all(...given)),
    *iterate(...given) {
      yield* compare(own.all(...given), () => other.all(...given));
    },
    pluck: () => pairInMode(sql, own.pluck(), { other: other.pluck(), postgres, report }),
    raw: () => pairInMode(sql, own.raw(), { other: other.raw(), postgres, report }),
  };
}

function describeDifference(one: string, two: string): string {
  const at = Array.from(one).findIndex((character, place) => two[place] !== character);
  const from = Math.max(0, (at === -1 ? one.length : at) - 60);
  return `SQLite …${one.slice(from, from + 200)}; PostgreSQL …${two.slice(from, from + 200)}`;
}

/**
 * Runs a statement on PostgreSQL. If it fails, returns the error as a text, which counts as a difference, without
 * ending the transaction.
 */
function attempt(postgres: Store, sql: string, ask: () => unknown): unknown {
  const isInWrite = postgres.transactionNo !== undefined && !/^(?:SAVEPOINT|RELEASE|ROLLBACK)/.test(sql);
  if (isInWrite) postgres.prepare('SAVEPOINT mirrored').run();
  try {
    const answer = ask();
    if (isInWrite) postgres.prepare('RELEASE SAVEPOINT mirrored').run();
    return answer;
  } catch (error) {
    if (isInWrite) postgres.prepare('ROLLBACK TO SAVEPOINT mirrored').run();
    return String(error);
  }
}

/**
 * Returns a result as text for comparison. Columns are ordered by name; rows are sorted unless the statement orders
 * them.
 */
function normal(answer: unknown, isOrdered: boolean): string {
  if (isJoined(answer)) return normal(takeApart(answer), false);
  if (!Array.isArray(answer) || isOrdered) return asText(answer);
  return answer.map(asText).sort().join('\n');
}

/**
 * Tells whether a result is one row that contains many rows in columns: JSON lists of equal length, and at last a
 * Buffer with the bytes of all rows joined.
 */
function isJoined(answer: unknown): answer is (string | Buffer)[] {
  return (
    Array.isArray(answer) && answer.length > 1 && answer.at(-1) instanceof Uint8Array && typeof answer[0] === 'string'
  );
}

function takeApart(row: readonly (string | Buffer)[]): unknown[] {
  const bytes = row.at(-1) as Buffer;
  const lists = row.slice(0, -1).map((list) => JSON.parse(list as string) as unknown[]);
  const size = bytes.length / lists[0]!.length;
  return lists[0]!.map((_, n) => [...lists.map((list) => list[n] ?? null), bytes.subarray(n * size, (n + 1) * size)]);
}

function asText(value: unknown): string {
  return (
    JSON.stringify(value, function (this: Record<string, unknown>, key, part: unknown) {
      const own = this[key];
      if (own instanceof Uint8Array) return Buffer.from(own).toString('hex');
      if (typeof part !== 'object' || part === null || Array.isArray(part)) return part;
      const entries = Object.entries(part);
      // The engines name a column without a name differently.
      if (entries.length === 1) return { value: entries[0]![1] };
      return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
    }) ?? 'undefined'
  );
}
