/** The round trips that it takes to encode and link memories, and the links that come of it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTexts } from '../../bench/load.ts';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import { newMemory, openTestEngine, type TestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

/** Memories of a group that is worked off in one batch, and number of groups. */
const [GROUP, GROUPS] = [256, 3];
/** Greatest number of round trips of a batch, for its claims, its encoding and its links. */
const MOST_TRIPS = 120;
/** Greatest number of statements for each memory of a batch. */
const MOST_STATEMENTS = 1.5;

/** Places of which each contradicts the others. */
const PLACES = ['Valencia', 'Toledo', 'Seville'];

const server = await startPostgres();
describe.skipIf(server === undefined)('encoding and linking in PostgreSQL', () => {
  let database: TestEngine;
  let file: TestEngine;
  const texts = createTexts(GROUP * GROUPS);
  const add = (fixture: TestEngine, group: number) =>
    fixture.tenant.addMemories(
      texts
        .slice(group * GROUP, (group + 1) * GROUP)
        .map((content, n) => newMemory({ content: n % 8 === 0 ? `I live in ${PLACES[n % PLACES.length]}.` : content })),
    );
  beforeAll(async () => {
    database = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    file = await openTestEngine();
  });
  afterAll(async () => {
    await database?.close();
    await file?.close();
    server?.stop();
  });

  test('take few round trips, and make the links that a file has', async () => {
    for (let group = 0; group < GROUPS; group += 1) {
      await add(file, group);
      await file.drain(GROUP);
      await add(database, group);
      const before = tripTotals();
      await database.drain(GROUP);
      const after = tripTotals();
      if (group === 0) continue; // Models, tables without statistics and predictions are new to the first batch.
      expect(after.trips - before.trips).toBeLessThanOrEqual(MOST_TRIPS);
      expect((after.statements - before.statements) / GROUP).toBeLessThanOrEqual(MOST_STATEMENTS);
    }
    const linksOf = (fixture: TestEngine) =>
      fixture.batch
        .open()
        .store.prepare('SELECT src, dst, type, similarity, weight FROM edges ORDER BY src, dst, type')
        .all() as { type: string }[];
    expect([...new Set(linksOf(file).map(({ type }) => type))].sort()).toEqual(['contradicts', 'waypoint']);
    expect(linksOf(database)).toEqual(linksOf(file));
  });
});
