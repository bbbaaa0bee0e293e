/** Old blocks of words in PostgreSQL: no add joins them, and upkeep does, in commits of bounded size. */
import { afterAll, describe, expect, test } from 'vitest';
import type { Store } from '../../src/engine/store/open-store.ts';
import { MOST_BLOCKS } from '../../src/engine/store/postgres/join-blocks.ts';
import { openTenantStore } from '../../src/engine/store/postgres/tenant-database.ts';
import { clearText, deleteText, putText } from '../../src/engine/store/word-index/memory-text.ts';
import { joinSomeText } from '../../src/engine/store/word-index/merges.ts';
import { openWordSearch } from '../../src/engine/store/word-index/open-word-search.ts';
import { textRewrites } from '../../src/engine/store/word-index/rewrite-log.ts';
import { runDueSchedules } from '../../src/engine/upkeep/schedules.ts';
import { textRow, WEIGHTS } from '../conformance/word-search.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { watchPlans } from '../support/postgres-plans.ts';
import { startPostgres } from '../support/postgres.ts';
import { openTemporaryStore } from '../support/temporary-store.ts';

/** Number of different words of each old memory. */
const WORDS = 1_000;
/** Numbers of old memories, one for each block of the first range. */
const OLD = Array.from({ length: 16 }, (_, block) => 256 * block + 7);
/** Number of a memory from which on the first range is old. */
const NEW = 6_200;
/** Words of letters alone, as one with digits counts as a name and has further terms. */
const word = (n: number) => `q${[...String(n).padStart(3, '0')].map((digit) => 'bcdfghjklm'[Number(digit)]).join('')}`;
const TEXTS = [word(1), word(500), word(999), 'ship', `${word(3)} ${word(4)}`, 'pier'];

const content = Array.from({ length: WORDS }, (_, n) => word(n)).join(' ');

const server = await startPostgres();
describe.skipIf(server === undefined)('old blocks of words in PostgreSQL', () => {
  afterAll(() => server?.stop());
  const open = (url: string) => openTenantStore({ database: url, tenant: 'words', path: '/nowhere', role: 'worker' });
  const blocksOf = async (url: string) => {
    const rows = await server!.read(
      url,
      `SELECT count(*)::int AS rows, count(*) FILTER (WHERE parts <> '')::int AS joined FROM word_blocks`,
    );
    return rows[0] as { rows: number; joined: number };
  };
  const commit = (stores: readonly Store[], work: (store: Store) => void) => {
    for (const store of stores) {
      store.write(() => {
        work(store);
        textRewrites.note(store, [...OLD, NEW, NEW + 1]);
      });
    }
  };
  const fill = (stores: readonly Store[]) => {
    for (const n of OLD) commit(stores, (store) => putText(store, textRow(n, { content, title: 'ship' })));
  };
  const answers = (store: Store) =>
    store.read(() => {
      const words = openWordSearch(store);
      words.expect(TEXTS, 'rank');
      return [TEXTS.map((one) => words.frequencyOf(one)), words.best(TEXTS, WEIGHTS, 50)];
    });

  test('stay as they are in the commit of an add, and are joined step by step, with equal answers', async () => {
    const url = await server!.createSchema();
    using file = openTemporaryStore();
    let database = open(url);
    const both = () => [file, database];
    fill(both());
    const before = await blocksOf(url);
    expect(before).toEqual({ rows: 16 * (WORDS + 1), joined: 0 });
    commit(both(), (store) => putText(store, textRow(NEW, { content: 'ship' })));
    expect(await blocksOf(url)).toEqual({ rows: before.rows + 1, joined: 0 });

    const changes: readonly ((store: Store) => void)[] = [
      (store) => putText(store, textRow(OLD[2]!, { content: `pier ship ${word(1)} ${word(999)}` })),
      (store) => deleteText(store, OLD[3]!),
      (store) => putText(store, textRow(OLD[4]!, { content: `pier ${content}` })),
      (store) => putText(store, textRow(NEW + 1, { content: `${word(1)} ${word(500)} pier` })),
    ];
    let steps = 0;
    for (let [last, more] = [await blocksOf(url), true]; more; steps += 1) {
      more = joinSomeText(database);
      const now = await blocksOf(url);
      // The joined blocks are gone, and there is a new row for each 2 to 16 of them.
      expect(last.rows - now.rows + now.joined - last.joined).toBeLessThanOrEqual(MOST_BLOCKS);
      expect(answers(database)).toEqual(answers(file));
      const change = changes[steps];
      if (change !== undefined) commit(both(), change);
      expect(answers(database)).toEqual(answers(file));
      last = await blocksOf(url);
      // What ends in the middle goes on elsewhere, and what was undone is done again.
      database.close();
      database = open(url);
      expect(() => {
        database.write(() => {
          database.words!.joinBlocks();
          throw new Error('undone');
        });
      }).toThrow('undone');
    }
    expect(steps).toBeGreaterThan(7);
    const { rows, joined } = await blocksOf(url);
    expect(joined).toBeGreaterThan(WORDS - 10);
    expect(rows - joined).toBeLessThan(40);
    expect(joinSomeText(database)).toBe(false);
    // The index that is made anew begins again.
    commit(both(), clearText);
    fill(both());
    commit(both(), (store) => putText(store, textRow(NEW, { content: 'ship' })));
    while (joinSomeText(database));
    expect(await blocksOf(url)).toEqual({ rows: WORDS + 2, joined: WORDS + 1 });
    expect(answers(database)).toEqual(answers(file));
    database.close();
  });

  test('are found term by term, while the server knows no statistics', async () => {
    const url = await server!.createSchema();
    const plans = await watchPlans(server!, url);
    const database = open(url);
    fill([database]);
    commit([database], (store) => putText(store, textRow(NEW, { content: 'ship' })));
    plans();
    while (joinSomeText(database));
    const ran = plans().filter(({ text }) => /word_blocks|word_rows/.test(text));
    expect(ran.length).toBeGreaterThan(16);
    expect(ran.flatMap(({ readWhole }) => readWhole)).toEqual([]);
    expect(ran.filter(({ rowsRead }) => rowsRead > 16 * WORDS)).toEqual([]);
    expect(ran.filter(({ pairsDropped }) => pairsDropped > 0)).toEqual([]);
    database.close();
  });

  test('are joined by the upkeep of a worker', async () => {
    const url = await server!.createSchema();
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: url } });
    const { store } = fixture.maintenance.open();
    const put = (n: number) => store.write(() => putText(store, textRow(n, { content: 'ship' })));
    for (const n of [...OLD, NEW]) put(n);
    expect(await blocksOf(url)).toEqual({ rows: 17, joined: 0 });
    expect(await runDueSchedules(fixture.maintenance)).toContain('words');
    expect(await blocksOf(url)).toEqual({ rows: 2, joined: 1 });
  });
});
