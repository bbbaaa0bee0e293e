import { expect, test } from 'vitest';
import { openTestEngine } from '../../support/engine-fixture.ts';

test('a question that names a path finds the memory whose files have it, by whole path, name or word', async () => {
  await using fixture = await openTestEngine();
  const files = ['src/auth/login.ts', 'src/auth/userSession.ts'];
  const { id } = await fixture.add({ content: 'Expired tokens are refused since the last release.', files });
  await fixture.add({ content: 'The cart rounds half to even.', files: ['src/cart/total.ts'] });
  for (const content of ['Anna bakes bread.', 'The source of the river is dry.']) await fixture.add({ content });
  await fixture.drain();
  const find = async (query: string) =>
    (await fixture.tenant.query({ query, k: 3, filter: {} })).hits.map(({ memory }) => memory.id);
  for (const query of ['src/auth/login.ts', 'What did we change in src/auth/login.ts?', 'login.ts', 'user session'])
    expect((await find(query))[0], query).toBe(id);

  await fixture.tenant.patchMemory(id, { files: ['lib/gate.rs'] });
  await fixture.drain();
  expect((await find('lib/gate.rs'))[0]).toBe(id);
  expect(await find('src/auth/login.ts')).not.toContain(id);
});
