import { afterAll, describe, expect, test } from 'vitest';
import { startPostgres, type PostgresServer } from '../support/postgres.ts';
import { canStartRedis } from '../support/redis.ts';
import { startServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

const server = canStartRedis() ? ((await startPostgres()) as PostgresServer) : undefined;
describe.skipIf(server === undefined)('several API processes', () => {
  afterAll(() => server?.stop());

  test('of one machine serve a database', async () => {
    const settings = { OM_DATABASE_URL: await server!.createSchema(), OM_API_PROCESSES: '2', OM_QUERY_THREADS: '1' };
    const service = await startServiceProcess({ folder: tempFolder(), settings });
    const contents = ['The ferry leaves at noon.', 'The harbour has nine berths.'];
    for (const content of contents) await service.request('POST', '/memory/add', { body: { content } });
    await service.idle();
    for (let process = 0; process < 2; process += 1) {
      const { body } = await service.request('POST', '/memory/query', {
        body: { query: 'When does the ferry leave?' },
      });
      expect(body.matches[0]!.content).toBe(contents[0]);
    }
    expect(await service.end('SIGTERM')).toEqual({ code: 0, signal: null });
  });
});
