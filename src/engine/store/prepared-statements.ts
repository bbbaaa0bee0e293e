import type Database from 'better-sqlite3';
import { LRUCache } from 'lru-cache';
import type { Statement } from './statement.ts';
import { damageError } from './storage-errors.ts';

/** Most prepared statements that a connection keeps, since callers determine the shapes of filters. */
const MAX_STATEMENTS = 500;

/** The prepared statements of one connection. */
export interface Statements {
  /** Returns the statement of a text, as `Store.prepare` describes. */
  prepare(sql: string): Statement;
  /** Grows with each statement that changed rows. */
  readonly changes: number;
}

/** @param file path of the database, which errors for damaged data name */
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

/**
 * Prepares a statement whose errors for damaged data name the file.
 * @param options.onChange called after each run that changed rows
 */
function prepareNaming(
  db: Database.Database,
  sql: string,
  { file, onChange }: { readonly file: string; readonly onChange: () => void },
): Statement {
  const naming = <Result>(
    own: (...parameters: unknown[]) => Result,
    hasChanged: (result: Result) => boolean,
  ): ((...parameters: unknown[]) => Result) => {
    return (...parameters) => {
      try {
        const result = own(...parameters);
        if (hasChanged(result)) onChange();
        return result;
      } catch (error) {
        throw damageError(error, file);
      }
    };
  };
  const statement = naming<Database.Statement>(
    () => db.prepare(sql),
    () => false,
  )();
  // A statement that writes and returns rows returns those that it changed.
  const isWriting = !statement.readonly;
  return Object.assign(statement as Statement, {
    get: naming(statement.get.bind(statement), (row) => isWriting && row !== undefined),
    all: naming(statement.all.bind(statement), (rows) => isWriting && rows.length > 0),
    run: naming(statement.run.bind(statement), ({ changes }) => changes > 0),
  });
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
