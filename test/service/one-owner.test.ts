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

test('what shares the data with others and what wants it alone keep out of each other', async () => {
  const folder = tempFolder();
  const api = await startServiceProcess({ folder, command: 'api' });
  const worker = await startServiceProcess({ folder, command: 'worker' });
  // It would take their leases for those of the dead.
  const alone = spawnService({ folder });
  await expect(alone.ready).rejects.toThrow(`an API or workers use the data in ${folder}: stop them first`);
  expect((await alone.exited).code).toBe(1);
  await Promise.all([api.end('SIGKILL'), worker.end('SIGTERM')]);

  const service = await startServiceProcess({ folder });
  for (const command of ['api', 'worker'] as const) {
    const late = spawnService({ folder, command });
    await expect(late.ready).rejects.toThrow(`another Cairn process (pid ${service.pid}) uses the data`);
    expect((await late.exited).code).toBe(1);
  }
});
