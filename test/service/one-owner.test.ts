import { expect, test } from 'vitest';
import { spawnService, startServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

test('a second service on the same data refuses to start and says who has it; the first goes on', async () => {
  const folder = tempFolder();
  const first = await startServiceProcess({ folder });
  const second = spawnService({ folder });
  await expect(second.ready).rejects.toThrow(`another Cairn process (pid ${first.pid}) uses the data`);
  expect((await second.exited).code).toBe(1);
  expect((await first.request('POST', '/memory/add', { body: { content: 'still here' } })).status).toBe(202);
  await first.end('SIGKILL');
  // However the first ended, its lock ended with it.
  const third = await startServiceProcess({ folder });
  expect((await third.request('GET', '/memory/all')).body.items).toMatchObject([{ content: 'still here' }]);
});
