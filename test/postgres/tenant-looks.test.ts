/** The looks into tenants in PostgreSQL for standing queries and evaluation sets. */
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { createCensusTaker } from '../../src/engine/census.ts';
import { placeOf } from '../../src/engine/control/place-of.ts';
import { tenantAtPath } from '../../src/engine/control/tenant-paths.ts';
import { silentLogger } from '../../src/engine/ports.ts';
import { lookIntoTenant } from '../../src/engine/store/postgres/tenant-database.ts';
import { openParts } from '../../src/engine/parts/engine-parts.ts';
import { countMemories } from '../../src/engine/store/memory-counts.ts';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import { newMemory, openTestEngine } from '../support/engine-fixture.ts';
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

  test('a census counts only the tenants that were written to since', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    const { engine } = fixture;
    for (const id of ['counted-a', 'counted-b']) {
      engine.control.createTenant(id);
      await (await engine.tenant(id)).addMemories([newMemory({ content: 'The ferry leaves.' })]);
    }
    const looked: string[] = [];
    const look = (file: string) => {
      looked.push(tenantAtPath(engine.config.paths, file)!.tenant);
      return lookIntoTenant({ ...placeOf(engine.config, file)!, path: file });
    };
    const { control, clock, looks } = engine;
    const options = { control, clock, logger: silentLogger, schedules: [], look, stampsOf: looks.stampsOf };
    const census = createCensusTaker(options);
    onTestFinished(() => census.close());
    const next = async () => {
      looked.length = 0;
      const known = await census.read();
      await expect.poll(async () => (await census.read()) !== known, { timeout: 20_000 }).toBe(true);
      return looked.length;
    };
    await expect.poll(() => census.read()).toMatchObject({ tenants: 3 });
    expect(await next()).toBe(0);
    await (await engine.tenant('counted-b')).addMemories([newMemory({ content: 'It is back.' })]);
    await expect.poll(() => census.read().then(() => looked), { timeout: 20_000 }).toEqual(['counted-b']);
  }, 60_000);

  test('a server that is silent is asked nothing by the thread of requests after the first statement', async () => {
    const settings = { OM_DATABASE_URL: await server!.createSchema() };
    await using fixture = await openTestEngine({ settings });
    const { control, looks, rates } = fixture.engine;
    const take = () => rates.take({ key: 'a', kind: 'queries' }, { cost: 1, perMinute: 9, mustFit: true });
    const codeOf = (work: () => unknown) => {
      try {
        return work() && 'answered';
      } catch (error) {
        return (error as { code?: string }).code;
      }
    };
    const asked = [() => control.listTenants(), () => control.countKeys()];
    expect((await looks.stampsOf(['default'])).size).toBe(1);
    expect([...asked, take].map(codeOf)).toEqual(['answered', 'answered', 'answered']);
    server!.pause();
    try {
      await expect.poll(() => control.isSilent(), { timeout: 20_000 }).toBe(true);
      let before = tripTotals().trips;
      // The control database still believes in what it has read, so the look itself must not ask.
      expect(await looks.stampsOf(['default']).catch(() => new Map())).toEqual(new Map());
      expect(tripTotals().trips).toBe(before);
      expect(codeOf(asked[0]!)).toBe('unavailable');
      before = tripTotals().trips;
      for (let look = 0; look < 3; look++) {
        expect(asked.map(codeOf)).toEqual(['unavailable', 'unavailable']);
        codeOf(take);
        await expect(looks.find('standing').next()).rejects.toMatchObject({ code: 'unavailable' });
        await expect(looks.stampsOf(['default'])).rejects.toMatchObject({ code: 'unavailable' });
      }
      expect(tripTotals().trips).toBe(before);
    } finally {
      server!.resume();
    }
    await expect.poll(() => control.isSilent(), { timeout: 20_000 }).toBe(false);
    expect([...asked, take].map(codeOf)).toEqual(['answered', 'answered', 'answered']);
    expect((await looks.stampsOf(['default'])).size).toBe(1);
  }, 60_000);

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
