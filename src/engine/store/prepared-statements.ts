import type Database from 'better-sqlite3';
import { LRUCache } from 'lru-cache';
import type { Statement } from './statement.ts';
import { damageError } from './storage-errors.ts';

/**
 * Greatest number of prepared statements that a connection keeps. A limit is needed because the filters of callers lead
 * to many different statements.
 */
const MAX_STATEMENTS = 500;

/** The prepared statements of one connection. */
export interface Statements {
  /** Returns the prepared statement for an SQL text, as `Store.prepare` does. */
  prepare(sql: string): Statement;
  /** Counter that rises with each statement that changed rows. */
  readonly changes: number;
}

/**
 * Makes a cache of the prepared statements of a connection, which keeps the 500 that were used last.
 * @param file path of the database, which errors about damaged data name
 */
export function createStatements(db: Database.Database, file: string): Statements {
  const statements = new LRUCache<string, Statement>({ max: MAX_STATEMENTS });
  let changes = 0;
  const onChange = () => void (changes += 1);
  return {
    prepare(sql) {
      let statement = statements.get(sql);
      if (statement === undefined)
        statements.set(sql, (statement = prepareNaming(db, hideParameters(sql), { file, onChange })));
      return statement;
    },
    get changes() {
      return changes;
    },
  };
}

/** The form of a statement's rows: an object by column, the value of the first column, or an array. */
type Mode = 'row' | 'pluck' | 'raw';

/**
 * Prepares a statement whose errors about damaged data name the file. Each form of rows (`Mode`) has its own statement
 * of SQLite, since a shared one would return rows in the form that was set last.
 * @param options.onChange called after each `run` that changed rows, and after each `get` or `all` of a statement that
 *   writes and returned rows
 */
function prepareNaming(
  db: Database.Database,
  sql: string,
  { file, onChange }: { readonly file: string; readonly onChange: () => void },
): Statement {
  const naming = <Result>(work: () => Result): Result => {
    try {
      return work();
    } catch (error) {
      throw damageError(error, file);
    }
  };
  // Prepared at once, so that a mistake shows where it is made; it serves the mode that is used first.
  let unused: Database.Statement | undefined = naming(() => db.prepare(sql));
  // A statement that writes and returns rows returns those that it changed.
  const isWriting = !unused.readonly;
  const take = (mode: Mode): Database.Statement => {
    const taken = unused ?? db.prepare(sql);
    unused = undefined;
    return mode === 'row' ? taken : taken[mode]();
  };
  const modes = new Map<Mode, Statement>();
  const inMode = (mode: Mode): Statement => {
    const known = modes.get(mode);
    if (known !== undefined) return known;
    let own: Database.Statement | undefined;
    const statement = () => (own ??= take(mode));
    const made: Statement = {
      // Each add calls these two a dozen times: they do without a function of their own.
      run: (...parameters) => {
        try {
          const result = statement().run(...parameters);
          if (result.changes > 0) onChange();
          return result;
        } catch (error) {
          throw damageError(error, file);
        }
      },
      get: (...parameters) => {
        try {
          const row = statement().get(...parameters);
          if (isWriting && row !== undefined) onChange();
          return row;
        } catch (error) {
          throw damageError(error, file);
        }
      },
      all: (...parameters) =>
        naming(() => {
          const rows = statement().all(...parameters);
          if (isWriting && rows.length > 0) onChange();
          return rows;
        }),
      iterate: (...parameters) => naming(() => statement().iterate(...parameters)),
      pluck: () => inMode('pluck'),
      raw: () => inMode('raw'),
    };
    modes.set(mode, made);
    return made;
  };
  return inMode('row');
}

/**
 * Writes each parameter as `+?`. SQLite built with STAT4, as better-sqlite3 is, looks at bound values while it plans a
 * join, an ORDER BY or a LIMIT, and then prepares the statement again at every binding. That takes 3 to 40
 * microseconds, a quarter of an add. A unary plus hides the parameter and changes neither its value nor the choice of
 * an index.
 */
function hideParameters(sql: string): string {
  return sql.replace(/\?|:[a-z]\w*/gi, '+$&');
}
