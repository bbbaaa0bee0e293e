/** The word index in PostgreSQL beside FTS5: equal frequencies, and scores that are equal to the last digit. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inSavepoint } from '../../src/engine/store/savepoint.ts';
import type { Store } from '../../src/engine/store/open-store.ts';
import { openBlockingConnection } from '../../src/engine/store/postgres/blocking-connection.ts';
import { migrateSchema } from '../../src/engine/store/postgres/migrate-schema.ts';
import { ensureTenant, openPostgresStore, readCatalog } from '../../src/engine/store/postgres/open-postgres-store.ts';
import { openTenantStore } from '../../src/engine/store/postgres/tenant-database.ts';
import { matchingText } from '../../src/engine/store/word-index/matching-rows.ts';
import { clearText, deleteText, putText } from '../../src/engine/store/word-index/memory-text.ts';
import { openWordSearch } from '../../src/engine/store/word-index/open-word-search.ts';
import { textRewrites } from '../../src/engine/store/word-index/rewrite-log.ts';
import { textRow, WEIGHTS } from '../conformance/word-search.ts';
import { startPostgres } from '../support/postgres.ts';
import { openTemporaryStore } from '../support/temporary-store.ts';

const WORDS = [
  'ship',
  'ships',
  'harbour',
  'écluse',
  '灯台守',
  'src/userName.ts',
  'a',
  'the',
  `long${'x'.repeat(3_000)}`,
];
const TEXTS = ['ship', 'harbour', 'the ship', 'ship ship', 'écluse', '灯台', 'usernameǀ', 'nowhere', WORDS.at(-1)!];

const server = await startPostgres();
describe.skipIf(server === undefined)('words in PostgreSQL', () => {
  let runs = 0;
  let open: (tenant: string) => Store;
  beforeAll(() => {
    open = (tenant) => openTenantStore({ database: server!.url, tenant, path: '/nowhere', role: 'worker' });
  });
  afterAll(() => server?.stop());

  const text = fc.array(fc.constantFrom(...WORDS), { maxLength: 6 }).map((words) => words.join(' '));
  // Blocks of the first 4,096 rows are joined once there is a row above 6,144.
  const number = fc.oneof(
    { weight: 3, arbitrary: fc.integer({ min: 1, max: 600 }) },
    { weight: 1, arbitrary: fc.integer({ min: 3_800, max: 4_200 }) },
    { weight: 1, arbitrary: fc.integer({ min: 6_100, max: 6_400 }) },
  );
  const change = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ put: number, content: text, context: text, title: text }),
    },
    { weight: 2, arbitrary: fc.record({ remove: number }) },
    { weight: 1, arbitrary: fc.record({ undone: number, content: text }) },
  );
  type Change =
    | { put: number; content: string; context: string; title: string }
    | { remove: number }
    | { undone: number; content: string };

  function apply(store: Store, changes: readonly Change[]): void {
    store.write(() => {
      for (const one of changes) {
        if ('put' in one) {
          putText(store, textRow(one.put, one));
          textRewrites.note(store, [one.put]);
        } else if ('remove' in one) deleteText(store, one.remove);
        else {
          inSavepoint(
            store,
            () => {
              putText(store, textRow(one.undone, { content: one.content }));
              throw new Error('undone');
            },
            () => {},
          );
        }
      }
    });
  }

  function answers(store: Store): unknown[] {
    return store.read(() => {
      const words = openWordSearch(store);
      words.expect(TEXTS, 'rank');
      const among = Array.from({ length: 300 }, (_, n) => 2 * n + 1);
      return [
        words.rows,
        TEXTS.map((one) => words.frequencyOf(one)),
        // A cost and no answer: FTS5 still holds words of rows that were removed.
        TEXTS.every((one) => words.bytesOf(one) > 0 || words.frequencyOf(one) === 0),
        words.best(TEXTS, WEIGHTS, 50),
        words.bestOf(TEXTS, WEIGHTS, among, 50),
        TEXTS.map((one) => matchingText(store, one, among).sort((a, b) => a - b)),
        TEXTS.map((one) => matchingText(store, one, among, ['content', 'title']).sort((a, b) => a - b)),
      ];
    });
  }

  test('are found and scored as in a file, whatever was put, replaced, deleted and undone', () => {
    fc.assert(
      fc.property(fc.array(fc.array(change, { maxLength: 30 }), { maxLength: 4 }), (commits) => {
        using file = openTemporaryStore();
        const database = open(`words ${(runs += 1)}`);
        for (const changes of commits) {
          apply(file, changes);
          apply(database, changes);
          expect(answers(database)).toEqual(answers(file));
        }
        for (const store of [file, database]) store.write(() => clearText(store));
        expect(answers(database)).toEqual(answers(file));
        database.close();
      }),
      { numRuns: 25 },
    );
  });

  test('take the same statements for a hundred rows as for one', () => {
    const connection = openBlockingConnection(server!.url);
    migrateSchema(connection);
    const catalog = readCatalog(connection);
    const store = openPostgresStore({ connection, catalog, tenant: ensureTenant(connection, 'statements') });
    const tripsOf = (from: number, rows: number) => {
      const before = connection.roundTrips;
      store.write(() => {
        for (let n = 0; n < rows; n += 1) putText(store, textRow(from + n, { content: `ship ${n}` }));
      });
      return connection.roundTrips - before;
    };
    tripsOf(1, 1);
    expect([tripsOf(10, 1), tripsOf(100, 100)]).toEqual([4, 4]);
    connection.close();
  });
});
