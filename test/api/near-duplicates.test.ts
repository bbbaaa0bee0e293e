import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), workers: true });
});
afterAll(() => api.stop());

const remember = async (content: string, fields: object): Promise<string> =>
  (await api.request('POST', '/memory/add?wait=60000', { body: { content, ...fields } })).body.id;

interface Pair {
  readonly earlier: { readonly id: string };
  readonly later: { readonly id: string };
  readonly similarity: number;
}
const pairs = async (query: string, key?: string): Promise<readonly Pair[]> => {
  const reply = await api.request('GET', `/memory/duplicates?${query}`, key === undefined ? {} : { key });
  expect(reply.status, reply.text).toBe(200);
  return reply.body['items'] as unknown as readonly Pair[];
};

test('two memories that say nearly the same are one pair, until one of them gives way', async () => {
  const first = await remember('The spare key lies under the blue flower pot.', { user_id: 'ana', tags: ['home'] });
  const second = await remember('The spare key lies under the blue flower pot now.', { user_id: 'ana' });
  await remember('Bees dance to tell where flowers are.', { user_id: 'ana' });
  const found = await pairs('user_id=ana&min_similarity=0.6');
  expect(found).toMatchObject([{ earlier: { id: first }, later: { id: second } }]);
  expect(await pairs('user_id=ben&min_similarity=0.1')).toEqual([]);
  expect(await pairs(`user_id=ana&min_similarity=${Math.min(1, found[0]!.similarity + 0.01).toFixed(4)}`)).toEqual([]);

  const { control } = api.engine;
  const bound = control.createKey({ tenantId: 'default', role: 'read', userId: 'ana' }).secret;
  const tagged = control.createKey({ tenantId: 'default', role: 'read', tags: ['home'] }).secret;
  expect(await pairs('min_similarity=0.6', bound)).toHaveLength(1);
  expect(await pairs('min_similarity=0.6', tagged)).toEqual([]);

  await api.request('POST', '/memory/supersede', { body: { old_id: first, new_id: second } });
  expect(await pairs('min_similarity=0.6')).toEqual([]);
});
