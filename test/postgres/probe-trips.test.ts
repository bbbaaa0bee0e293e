/** The round trips of what anyone may ask as often as they like, as load balancers do. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import { startPostgres } from '../support/postgres.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const PROBES = 200;

const server = await startPostgres();
describe.skipIf(server === undefined)('probes of a service on PostgreSQL', () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await startApi({ folder: tempFolder(), settings: { OM_DATABASE_URL: await server!.createSchema() } });
  });
  afterAll(async () => {
    await api?.stop();
    server?.stop();
  });

  test.each(['/health', '/ready'])('%s reads once for all that come within a moment', async (path) => {
    const probe = async () => (await api.request('GET', path, { key: null })).status;
    await probe();
    const [before, begunAt] = [tripTotals().trips, performance.now()];
    const answers = await Promise.all(Array.from({ length: PROBES }, probe));
    expect(new Set(answers)).toEqual(new Set([200]));
    // However slow the machine is: at most a read each tenth of a second, of four round trips.
    const moments = 2 + Math.ceil((performance.now() - begunAt) / 100);
    expect(tripTotals().trips - before).toBeLessThanOrEqual(Math.min(4 * moments, PROBES / 2));
  });
});
