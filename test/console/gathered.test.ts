import { afterAll, beforeAll, expect } from 'vitest';
import { browserTest, openConsole, signIn, useBrowser, violationsOf } from '../support/console-browser.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Memories that say nearly the same, gathered and given back in the console. */

const POOL = [
  'Ana swims every Monday morning at the city pool before work.',
  'Ana swims every Monday morning at the city pool before work, and in winter too.',
];

let api: TestApi;
useBrowser();

beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), workers: true });
  for (const content of POOL)
    await api.request('POST', '/memory/add?wait=60000', { body: { content, user_id: 'ana' } });
});
afterAll(() => api.stop());

browserTest('what could be gathered is looked at, gathered, listed with its sources, and undone', async () => {
  await using opened = await openConsole(api.url, 'browse?view=gathered&user_id=ana');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('heading', { name: 'Nothing was gathered yet' }).waitFor();
  await page.getByRole('button', { name: 'Look what could be gathered' }).click();
  const proposed = page.getByRole('region', { name: 'This would be gathered' });
  await proposed.getByText(POOL[1]!).waitFor();
  await proposed.getByText('from 2 memories').waitFor();
  expect((await api.request('GET', '/consolidations')).body.items).toEqual([]);
  expect(await violationsOf(page)).toEqual([]);
  await page.getByRole('button', { name: 'Gather them' }).click();
  const one = page.getByRole('article').filter({ hasText: 'sentences of its sources' });
  await one.getByText(POOL[1]!).waitFor();
  await one.getByText('Its 2 sources').click();
  await one.getByRole('link', { name: POOL[0]! }).waitFor();
  expect(await violationsOf(page)).toEqual([]);

  await one.getByRole('button', { name: 'Show its run alone' }).click();
  await page.waitForURL(/run=/);
  await one.getByRole('button', { name: 'Undo its whole run' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Undo' }).click();
  await page.getByText('Undone: 1 gathered memory erased.').waitFor();
  await page.getByText('Undone, or erased with a source.').waitFor();
  expect(await page.getByRole('button', { name: 'Undo', exact: true }).count()).toBe(0);

  await page.getByRole('button', { name: 'Look what could be gathered' }).click();
  await page.getByRole('heading', { name: 'Nothing says the same often enough' }).waitFor();
  await page.getByLabel('Also what was undone before').check();
  await proposed.getByText(POOL[1]!).waitFor();
});

browserTest('who may only read looks at it and changes nothing; one bound to tags is not shown it', async () => {
  const keyOf = (more: object) =>
    api.engine.control.createKey({ tenantId: 'default', role: 'read', ...more } as never).secret;
  {
    await using opened = await openConsole(api.url, 'browse?view=gathered&look=true&user_id=nobody');
    await signIn(opened.page, keyOf({}));
    await opened.page.getByRole('heading', { name: 'Nothing was gathered yet' }).waitFor();
    expect(await opened.page.getByRole('main').getByRole('button').count()).toBe(0);
  }
  await using opened = await openConsole(api.url, 'browse?view=gathered');
  await signIn(opened.page, keyOf({ tags: ['cats'] }));
  await opened.page.getByRole('heading', { name: /^(Nothing is stored yet|No memory matches)$/ }).waitFor();
  expect(await opened.page.getByRole('tab', { name: 'Gathered' }).count()).toBe(0);
});
