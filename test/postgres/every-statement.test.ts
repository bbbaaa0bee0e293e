/**
 * Every statement that is prepared from one text, with no part that is put together when the code runs, is understood
 * by PostgreSQL. Its values are null here, so wrong types of values are not noticed.
 */
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Store } from '../../src/engine/store/open-store.ts';
import { postgresError } from '../../src/engine/store/postgres/postgres-error.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

const SOURCE = path.resolve(import.meta.dirname, '../../src/engine');
/** Statements about the file itself, and those of databases that are SQLite whatever the engine. */
const OF_FILES_ONLY =
  /^\s*(?:PRAGMA|ATTACH|DETACH|VACUUM|BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|ANALYZE|CREATE|DROP)\b|sqlite_|dbstat|fts5|vec_|pragma_|temp\./i;
const FILES =
  /^(?:store\/(?!postgres\/|word-index\/|migrat|openmemory-file|vec0-table|check-database|write-ahead-log|file-on-disk|open-database|instance-lock|private-file|used-bytes|database-form)|commands\/|upkeep\/|steps\/|readers\/|retrieve\/|tenant\/)/;
const LITERAL = /\.prepare(?:<[^(]*>)?\(\s*(?:`([^`]*)`|'([^'\n]*)'|"([^"\n]*)")/g;

/** Lists the statements that have no part which is put together when the code runs. */
function listStatements(): { readonly place: string; readonly sql: string }[] {
  return (fs.readdirSync(SOURCE, { recursive: true }) as string[])
    .filter((name) => name.endsWith('.ts') && FILES.test(name))
    .flatMap((name) => {
      const text = fs.readFileSync(path.join(SOURCE, name), 'utf8');
      return [...text.matchAll(LITERAL)].map((found) => ({
        place: `${name}:${text.slice(0, found.index).split('\n').length}`,
        sql: found[1] ?? found[2] ?? found[3]!,
      }));
    })
    .filter(({ sql }) => !sql.includes('${') && !OF_FILES_ONLY.test(sql));
}

const isUndone = new Error('undone');

/** Lists that a statement may take: which one it means does not stand in its text. */
const LISTS = ['[1]', '["aa"]', '[[1, 1]]'];

/** Returns what is wrong with a statement itself, whatever values it gets; undefined if nothing is. */
function problemOf(store: Store, sql: string): string | undefined {
  const problems = LISTS.map((list) => problemWith(store, sql, list));
  return problems.includes(undefined) ? undefined : problems[0];
}

function problemWith(store: Store, sql: string, list: string): string | undefined {
  const parameters = [...sql.matchAll(/(json_each\(\s*)?(?:\?|(?<![:\w]):([a-z]\w*))/gi)];
  const isNamed = parameters.some(([, , name]) => name !== undefined);
  const values = parameters.map(([, isList]) => (isList === undefined ? null : list));
  const given: readonly unknown[] = isNamed
    ? [Object.fromEntries(parameters.map(([, , name], at) => [name, values[at]]))]
    : values;
  try {
    store.write(() => {
      const statement = store.prepare(sql);
      if (/^\s*(?:SELECT|WITH)|RETURNING/i.test(sql)) statement.all(...given);
      else statement.run(...given);
      throw isUndone;
    });
  } catch (error) {
    if (error === isUndone) return undefined;
    const code = postgresError(error)?.code;
    // Values that a column or a function does not take, as nearly all of them are null.
    if (code !== undefined && /^2[23]/.test(code)) return undefined;
    return `${code ?? ''} ${(error as Error).message}`;
  }
}

const server = await startPostgres();
describe.skipIf(server === undefined)('in PostgreSQL', () => {
  afterAll(() => server?.stop());

  test('every statement that the source holds as one text is understood', async () => {
    const settings = { OM_DATABASE_URL: await server!.createSchema(), OM_EMBEDDINGS: 'none' };
    await using fixture = await openTestEngine({ settings });
    const { store } = fixture.batch.open();
    const statements = listStatements();
    expect(statements.length).toBeGreaterThan(300);
    const problems = statements.flatMap(({ place, sql }) => {
      const problem = problemOf(store, sql);
      return problem === undefined ? [] : [`${place}: ${problem}`];
    });
    expect(problems).toEqual([]);
  });
});
