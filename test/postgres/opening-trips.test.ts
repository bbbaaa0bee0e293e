/** The round trips that a tenant takes which is opened anew for a question, as with more tenants than stay open. */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTexts } from '../../bench/load.ts';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import { openTenant } from '../../src/engine/tenant-file/open-tenant.ts';
import { newMemory, openTestEngine, type TestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

/** Number of tenants, of which two stay open, so that asking them in turn opens each anew. */
const TENANTS = 8;
/**
 * Greatest number of round trips of a tenant's opening and its first question: one finds the tenant, one reads what the
 * opening needs to know and a question asks first, and the rest are those of a question.
 */
const MOST_TRIPS = 10;
/** Number of tenants whose openings show what every opening asks. */
const FIRST_TENANTS = 2;

const server = await startPostgres();
describe.skipIf(server === undefined)('round trips of a tenant that is opened', () => {
  let fixture: TestEngine;
  let url: string;
  const texts = createTexts(20);
  const names = Array.from({ length: TENANTS }, (_, n) => `t${n}`);
  const tenantOf = (name: string) => fixture.engine.tenant(name);
  beforeAll(async () => {
    url = await server!.createSchema();
    fixture = await openTestEngine({ settings: { OM_DATABASE_URL: url, OM_OPEN_TENANTS: '2' } });
    for (const name of names) {
      fixture.engine.control.createTenant(name);
      await (await tenantOf(name)).addMemories(texts.map((content) => newMemory({ content, userId: 'ana' })));
    }
  });
  afterAll(async () => {
    await fixture?.close();
    server?.stop();
  });

  test('are at most 10 with its first question', async () => {
    const ask = async (name: string, place: number) => {
      const before = tripTotals().trips;
      const query = { query: texts[place]!.slice(0, 60), k: 10, filter: { userIds: ['ana'] }, minScore: 0 };
      const { hits } = await (await tenantOf(name)).query({ ...query, reinforce: false });
      expect(hits.length).toBeGreaterThan(0);
      return tripTotals().trips - before;
    };
    const counts: number[] = [];
    for (const [place, name] of names.entries()) counts.push(await ask(name, place));
    expect(Math.max(...counts.slice(FIRST_TENANTS))).toBeLessThanOrEqual(MOST_TRIPS);
  });

  test.for(['reader', 'worker', 'acknowledger'] as const)('are two before it is used: %s', (role) => {
    const identity = fixture.engine.embedder;
    const open = (tenant: string) =>
      openTenant(path.join(path.dirname(fixture.file), `${tenant}.sqlite`), {
        ...{ place: { database: url, tenant }, role, identity, now: 0 },
      });
    // It has the connection.
    const first = open(names[0]!);
    const tripsOf = (name: string) => {
      const before = tripTotals().trips;
      open(name).close();
      return tripTotals().trips - before;
    };
    expect(names.slice(1).map(tripsOf)).toEqual(names.slice(1).map(() => 2));
    first.close();
  });
});
