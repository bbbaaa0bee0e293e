import { expect, test } from 'vitest';
import { boundTenant } from '../../../src/engine/tenant/bound-tenant.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

test('what is derived outside of the bounds of a key makes no source and no episode, and limits no matches', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  const { tenant } = fixture;
  const add = async (content: string, tags: string[]) => (await fixture.add({ content, userId: 'ana', tags })).id;
  const seen: string[] = [];
  for (const place of ['gate', 'pier', 'deck']) seen.push(await add(`The ferry is at the ${place}.`, ['red']));
  const [source] = seen;
  const above = await add('All about boats.', []);
  const below = await add('Somebody concluded this.', []);
  await fixture.drain();
  const bound = boundTenant(tenant, { tags: ['red'] });
  const ask = async () => {
    const options = {
      reinforce: false,
      minScore: 0,
      k: 5,
      topK: { episodes: 0 },
      includeEpisodes: true,
      perDocument: 1,
    };
    const { hits, episodes } = await bound.query({ query: 'where is the ferry?', filter: {}, ...options });
    return { hits: hits.map(({ memory }) => memory.id).toSorted(), episodes: episodes?.map(({ id }) => id) };
  };
  const before = await ask();
  expect(before).toEqual({ hits: seen.toSorted(), episodes: [] });
  await tenant.linkMemories({ src: below, dst: source!, type: 'derived_from', weight: 1 });
  for (const src of seen.slice(1)) await tenant.linkMemories({ src, dst: above, type: 'derived_from', weight: 1 });
  expect(await ask()).toEqual(before);
});
