/** Requests that read a few rows of a tenant in PostgreSQL, for which the thread that serves them must not wait. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import { startPostgres } from '../support/postgres.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const TIMES = 20;

const server = await startPostgres();
describe.skipIf(server === undefined)('requests for a few rows of PostgreSQL', () => {
  let api: TestApi;
  beforeAll(async () => {
    const settings = { OM_DATABASE_URL: await server!.createSchema() };
    api = await startApi({ folder: tempFolder(), settings, threads: true });
  });
  afterAll(async () => {
    await api?.stop();
    server?.stop();
  });

  test('are answered by a reader thread', async () => {
    const added = await api.request('POST', '/memory/add', { body: { content: 'a heron by the weir' } });
    const { id, job_id: job } = added.body as { id: string; job_id: string };
    await api.request('PUT', '/items', { body: { namespace: 'birds', key: 'heron', value: { legs: 2 } } });
    const paths = [`/memory/${id}`, '/items?namespace=birds&key=heron', `/jobs/${job}`, '/learned'];
    for (const path of paths) {
      const read = async () => (await api.request('GET', path)).status;
      const statuses = [await read()];
      const before = tripTotals().trips;
      for (let n = 0; n < TIMES; n += 1) statuses.push(await read());
      expect(new Set(statuses), path).toEqual(new Set([200]));
      // The service looks after itself meanwhile.
      expect(tripTotals().trips - before, path).toBeLessThan(TIMES / 2);
    }
  });
});
