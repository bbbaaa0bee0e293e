/**
 * A bulk load into a database that PostgreSQL's own daemon has not analysed yet: what encodes and links memories takes
 * few statements, and these read few rows, though the tables were empty when the sessions began.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTexts } from '../../bench/load.ts';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import { newMemory, openTestEngine, type TestEngine } from '../support/engine-fixture.ts';
import { watchPlans, type RunStatement } from '../support/postgres-plans.ts';
import { startPostgres } from '../support/postgres.ts';

/** Memories of each group, and number of groups that are stored before the last one, whose statements are looked at. */
const [GROUP, GROUPS] = [128, 16];
/** Greatest number of rows that a statement may read beyond two for each one that it returns or changes. */
const SPARE_ROWS = 900;

const server = await startPostgres();
describe.skipIf(server === undefined)('a bulk load into a new database', () => {
  let fixture: TestEngine;
  let plans: () => RunStatement[];
  const texts = createTexts(GROUP * (GROUPS + 1));
  const load = async () => {
    const memories = texts
      .splice(0, GROUP)
      .map((content, n) =>
        newMemory({ content, userId: 'user', sessionId: n % 2 === 0 ? '' : `s ${n % 14}`, tags: [`t ${n % 9}`] }),
      );
    await fixture.tenant.addMemories(memories);
    await fixture.drain();
  };

  beforeAll(async () => {
    const url = await server!.createSchema();
    plans = await watchPlans(server!, url);
    fixture = await openTestEngine({ settings: { OM_DATABASE_URL: url } });
    for (let group = 0; group < GROUPS; group += 1) await load();
  });
  afterAll(async () => {
    await fixture?.close();
    server?.stop();
  });

  test('takes few statements for a memory, which read few rows', async () => {
    plans();
    const before = tripTotals();
    const { trips, statements } = before;
    await load();
    const after = tripTotals();
    expect((after.statements - statements) / GROUP).toBeLessThan(5);
    expect((after.trips - trips) / GROUP).toBeLessThan(2.5);
    const run = plans();
    expect(run.length).toBeGreaterThan(50);
    expect(run.filter(({ rowsRead, rowsReturned }) => rowsRead > SPARE_ROWS + 2 * rowsReturned)).toEqual([]);
  });
});
