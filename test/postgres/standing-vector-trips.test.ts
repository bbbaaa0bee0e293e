/** The round trips that vectors of standing queries take to PostgreSQL. */
import { afterAll, describe, expect, test } from 'vitest';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import {
  findStandingVectors,
  listPlacedQueryNos,
  putStandingVectors,
} from '../../src/engine/store/standing-vectors.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

const QUERIES = 1_100;

const server = await startPostgres();
describe.skipIf(server === undefined)('vectors of standing queries in PostgreSQL', () => {
  afterAll(() => server?.stop());

  test('are read some hundred at a time, and their numbers all at once', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    const { store } = fixture.batch.open();
    const insert = store.prepare(
      `INSERT INTO standing_queries (id, query, filter, given, created_at) VALUES (?, 'ferry', '{}', '{}', 0)`,
    );
    store.write(() => {
      for (let no = 0; no < QUERIES; no += 1) insert.run(`q${no}`);
    });
    const queryNos = store.prepare('SELECT query_no FROM standing_queries ORDER BY query_no').pluck().all() as number[];
    const vectors = queryNos.map((queryNo) => ({ queryNo, embedding: Float32Array.of(queryNo, 1, 2, 3) }));
    store.write(() => putStandingVectors(store, 1, vectors));
    const during = (read: () => unknown) => {
      const before = tripTotals().trips;
      const result = store.read(read);
      return { result, trips: tripTotals().trips - before };
    };

    const all = during(() => listPlacedQueryNos(store, 1));
    expect(all.result).toEqual(queryNos);
    const some = during(() => findStandingVectors(store, 1, queryNos));
    expect(some.result).toEqual(expect.arrayContaining(vectors));
    expect(some.trips).toSatisfy(isFew);
    expect(all.trips).toBeLessThanOrEqual(3);
    expect(during(() => findStandingVectors(store, 2, queryNos)).result).toEqual([]);
  });
});

/** Three slices, and the beginning and the end of the read. */
const isFew = (trips: number) => trips >= 3 && trips <= 5;
