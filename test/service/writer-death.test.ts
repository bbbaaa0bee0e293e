import { expect, test } from 'vitest';
import { type ServiceOptions, startServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** A module that ends the writer thread of its process at SIGUSR2, as an error in it would. */
const END_WRITER = `
  process.on('worker', (thread) => {
    if (thread.threadName === 'cairn-writer') process.on('SIGUSR2', () => thread.terminate());
  });`;
const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(END_WRITER)}`;

test.each<Pick<ServiceOptions, 'command' | 'settings'>>([
  { command: 'serve' },
  { command: 'serve', settings: { OM_API_PROCESSES: '2', OM_QUERY_THREADS: '1' } },
  { command: 'api' },
])('a process whose writer thread has ended ends, too, with an error: $command $settings', async (options) => {
  const folder = tempFolder();
  const settings = { ...options.settings, NODE_OPTIONS };
  const service = await startServiceProcess({ folder, ...options, settings });
  const add = (content: string) => service.request('POST', '/memory/add', { body: { content } });
  expect((await add('before')).status).toBe(202);
  service.signal('SIGUSR2');
  expect(await service.exited).toEqual({ code: 1, signal: null });
  expect(service.log.filter(({ msg }) => msg.endsWith('_died'))).toMatchObject([
    { msg: 'writer_died', error: 'the writer thread ended' },
  ]);

  const next = await startServiceProcess({ folder, ...options });
  expect((await next.request('GET', '/memory/all')).body.items).toMatchObject([{ content: 'before' }]);
  await next.end('SIGTERM');
});
