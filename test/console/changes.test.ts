import { afterAll, beforeAll, expect } from 'vitest';
import { browserTest, openConsole, show, signIn, useBrowser, violationsOf } from '../support/console-browser.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** What changed between two days, in the console. */

let api: TestApi;
useBrowser();

beforeAll(async () => {
  api = await startApi({ folder: tempFolder() });
  const add = async (content: string, user: string) => (await api.add({ content, user_id: user })).id;
  await add('The lighthouse is open on Sundays.', 'ana');
  await add('Cem rides a green bicycle.', 'cem');
  const old = await add('Ben lives in Bergen.', 'ana');
  const next = await add('Ben lives in Oslo now.', 'ana');
  await api.request('POST', '/memory/supersede', { body: { old_id: old, new_id: next } });
  await api.request('DELETE', `/memory/${await add('Nobody is told of this.', 'ana')}`);
});
afterAll(() => api.stop());

browserTest('what was added, replaced and erased is listed, of all or of one user, by either time', async () => {
  await using opened = await openConsole(api.url, 'browse?view=changes');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  const added = page.getByRole('region', { name: 'Added' });
  await added.getByRole('link', { name: 'The lighthouse is open on Sundays.' }).waitFor();
  await added.getByRole('link', { name: 'Cem rides a green bicycle.' }).waitFor();
  const superseded = page.getByRole('region', { name: 'Superseded' });
  await superseded.getByRole('link', { name: 'Ben lives in Bergen.' }).waitFor();
  await superseded.getByRole('link', { name: 'Ben lives in Oslo now.' }).waitFor();
  await page.getByText('1 memory was erased and 0 memories expired.').waitFor();
  expect(await page.getByText('Nobody is told of this.').count()).toBe(0);
  expect(await violationsOf(page)).toEqual([]);

  await page.getByLabel('User').fill('cem');
  await page.getByLabel('User').press('Enter');
  await added.getByRole('link', { name: 'The lighthouse is open on Sundays.' }).waitFor({ state: 'detached' });
  await added.getByRole('link', { name: 'Cem rides a green bicycle.' }).waitFor();
  await page.getByLabel('Compares').selectOption('valid');
  await page.waitForURL(/axis=valid/);
  await added.getByRole('link', { name: 'Cem rides a green bicycle.' }).waitFor();
  await page.getByLabel('Until', { exact: true }).fill('2020-02-01');
  await page.getByLabel('From', { exact: true }).fill('2020-01-01');
  await page.getByRole('heading', { name: 'Nothing changed in this time' }).waitFor();
  expect(await violationsOf(page)).toEqual([]);
});

browserTest('whose key is bound to a user sees what is theirs, and is offered no other user', async () => {
  const { secret } = api.engine.control.createKey({ tenantId: 'default', role: 'read', userId: 'cem' });
  await using opened = await openConsole(api.url, 'browse?view=changes');
  const { page } = opened;
  await signIn(page, secret);
  await page.getByRole('link', { name: 'Cem rides a green bicycle.' }).waitFor();
  expect(await page.getByText('The lighthouse is open on Sundays.').count()).toBe(0);
  expect(await page.getByRole('search').getByLabel('User').count()).toBe(0);
  await show(page, api.url, 'documents');
  expect(await page.getByRole('search').getByLabel('User').count()).toBe(0);
});
