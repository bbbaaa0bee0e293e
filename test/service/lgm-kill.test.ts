import { expect, test } from 'vitest';
import { failAt } from '../support/fleet.ts';
import { spawnService, startServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

const SETTINGS = { OM_MODE: 'langgraph', OM_EMBEDDINGS: 'none' };

test.each([
  ['store', { node: 'plan', content: 'Ship on Monday.', reflective: true }],
  ['reflection', { content: 'Mondays are busy.', context_ids: [] as string[] }],
])('a kill right after the first commit of /lgm/%s leaves no reflection without its source', async (route, sent) => {
  const folder = tempFolder();
  const before = await startServiceProcess({ folder, settings: SETTINGS });
  const { body: source } = await before.request('POST', '/memory/add', { body: { content: 'The week begins.' } });
  const body = 'context_ids' in sent ? { ...sent, context_ids: [source.id] } : sent;
  await before.end('SIGTERM');

  const killed = spawnService({ folder, settings: { ...SETTINGS, ...failAt('after-accept-commit:kill:1') } });
  await killed.ready;
  await expect(killed.request('POST', `/lgm/${route}`, { body })).rejects.toThrow();
  expect((await killed.exited).signal).toBe('SIGKILL');

  const after = await startServiceProcess({ folder, settings: SETTINGS });
  const { items } = (await after.request('GET', '/memory/all')).body;
  const reflections = items.filter(({ content }) => content === 'Mondays are busy.' || content.startsWith('[plan]'));
  expect(reflections).toHaveLength(1);
  const { items: links } = (await after.request('GET', `/memory/${reflections[0]!.id}/links`)).body;
  const sources = items.filter(
    ({ content }) => content === (route === 'store' ? 'Ship on Monday.' : 'The week begins.'),
  );
  expect(links).toMatchObject([{ id: sources[0]!.id, type: 'derived_from', direction: 'out' }]);
  await after.end('SIGTERM');
});
