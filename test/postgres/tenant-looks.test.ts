/** The looks into tenants in PostgreSQL for standing queries and evaluation sets. */
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { openParts } from '../../src/engine/parts/engine-parts.ts';
import { countMemories } from '../../src/engine/store/memory-counts.ts';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

const server = await startPostgres();
describe.skipIf(server === undefined)('in PostgreSQL', () => {
  afterAll(() => server?.stop());

  test('a search takes one statement for all tenants that were not written to', async () => {
    await using fixture = await openTestEngine({
      settings: { OM_EVENTS: 'true', OM_DATABASE_URL: await server!.createSchema() },
    });
    const { engine } = fixture;
    const find = async (what: 'standing' | 'evals') => {
      const ids: string[] = [];
      for await (const id of engine.looks.find(what)) ids.push(id);
      return ids;
    };
    const asked = { query: 'ferry', userId: 'ana', filter: {}, given: {}, minScore: 0 };
    for (const id of ['searched-a', 'searched-b', 'searched-c', 'searched-d']) engine.control.createTenant(id);
    await (await engine.tenant('searched-b')).createStandingQuery(asked);
    await (await engine.tenant('searched-a')).putEval({ name: 'harbour', guard: false, items: [] });
    expect(await find('standing')).toEqual(['searched-b']);
    expect(await find('evals')).toEqual(['searched-a']);
    const stampsBefore = await engine.looks.stampsOf(['searched-a', 'searched-b']);
    const before = tripTotals().trips;
    expect(await find('standing')).toEqual(['searched-b']);
    expect(tripTotals().trips - before).toBeLessThanOrEqual(4);
    await (await engine.tenant('searched-a')).createStandingQuery(asked);
    expect(await find('standing')).toEqual(['searched-a', 'searched-b']);
    const stamps = await engine.looks.stampsOf(['searched-a', 'searched-b']);
    expect(stamps.get('searched-a')).not.toBe(stampsBefore.get('searched-a'));
    expect(stamps.get('searched-b')).toBe(stampsBefore.get('searched-b'));
  });

  test('watched jobs are read with one statement', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    const { tenant } = fixture;
    const jobs = await Promise.all(Array.from({ length: 5 }, (_, no) => fixture.add({ content: `Ferry ${no}.` })));
    const ids = jobs.map(({ jobId }) => jobId);
    const byNo = (found: readonly { jobNo: number }[]) => found.toSorted((a, b) => a.jobNo - b.jobNo);
    expect(byNo(await tenant.findJobs(ids))).toEqual(byNo(await Promise.all(ids.map((id) => tenant.getJob(id)))));
    expect(await tenant.findJobs(['no id'])).toEqual([]);
    const before = tripTotals().trips;
    await tenant.findJobs(ids);
    expect(tripTotals().trips - before).toBeLessThanOrEqual(3);
  });

  test('a server that stops to answer holds up the thread of requests for some seconds, not for a minute', async () => {
    const url = await server!.createSchema();
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: url } });
    const { engine } = fixture;
    const path = engine.control.findTenantPath('default')!;
    const parts = openParts({ ...fixture.maintenance, ...{ role: 'reader', waitsBriefly: true, onCall() {} } });
    onTestFinished(() => {
      parts.pool.close();
      parts.budget.close();
    });
    expect((await engine.looks.stampsOf(['default'])).size).toBe(1);
    const readStore = () => countMemories(parts.pool.get(path).store);
    expect(readStore()).toBeDefined();
    server!.pause();
    try {
      expect(await engine.looks.stampsOf(['default'])).toEqual(new Map());
      expect(readStore).toThrow();
    } finally {
      server!.resume();
    }
    await expect
      .poll(() =>
        engine.looks.stampsOf(['default']).then(
          ({ size }) => size,
          () => 0,
        ),
      )
      .toBe(1);
    expect(readStore()).toBeDefined();
  }, 50_000); // Each statement once waited for a minute.
});
