import { afterAll, beforeAll, expect } from 'vitest';
import { browserTest, openConsole, show, signIn, useBrowser, violationsOf } from '../support/console-browser.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Several tenants and servers in the console: asked together, and each in the address of its views. */

const QUESTION = 'Which berth has the ferry Aurora?';

let here: TestApi;
let there: TestApi;
/** A key of two tenants with this role. */
const keyOf = (role: 'read' | 'admin', more: object = {}) =>
  here.engine.control.createKey({ tenantId: 'default', furtherTenantIds: ['team'], role, ...more }).secret;
useBrowser();

beforeAll(async () => {
  const settings = { OM_FEDERATION_ALLOW: '127.0.0.1', OM_FEDERATION_TIMEOUT_MS: '60000' };
  here = await startApi({ folder: tempFolder(), settings });
  there = await startApi({ folder: tempFolder(), settings: { OM_API_KEY: '' } });
  here.engine.control.createTenant('team');
  const ofTeam = here.engine.control.createKey({ tenantId: 'team', role: 'write' }).secret;
  await here.add({ content: 'The ferry Aurora has berth 4 on Mondays.', user_id: 'ana' });
  await here.add({ content: 'The ferry Aurora has berth 5 at night.', user_id: 'ben' }, ofTeam);
  await there.add({ content: 'The ferry Aurora has berth 6 in Turku \u202e<b>bold</b>.', user_id: 'cleo' });
});
afterAll(async () => {
  await here.stop();
  await there.stop();
});

browserTest('another server is registered, asked beside the tenants, and forgotten', async () => {
  await using opened = await openConsole(here.url, 'admin?tab=servers');
  const { page } = opened;
  await signIn(page, keyOf('admin'));
  await page.getByRole('heading', { name: 'No other server is registered' }).waitFor();
  await page.getByRole('button', { name: 'Register a server' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel(/^Name/).fill('turku');
  await dialog.getByLabel('Address').fill(there.url);
  await dialog.getByLabel('Key that it is asked with').fill('a-key');
  expect(await violationsOf(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.getByText(/OM_ENCRYPTION_KEY/).waitFor();
  await dialog.getByLabel('Key that it is asked with').fill('');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('row', { name: /^turku .* without a key/ }).waitFor();

  await show(page, here.url, `ask?query=${encodeURIComponent(QUESTION)}`);
  await page.getByRole('article', { name: 'Match 1' }).getByText('berth 4').waitFor();
  expect(await page.getByText('berth 5').count()).toBe(0);
  await page.getByRole('group', { name: 'Also ask' }).getByLabel('tenant team').check();
  await page.getByLabel('turku').check();
  const hit = (words: string) => page.getByRole('article').filter({ hasText: words });
  await hit('berth 6').getByText('turku', { exact: true }).waitFor();
  await hit('berth 6').getByText('RLO').waitFor();
  await hit('berth 5').getByText('tenant team').waitFor();
  await hit('berth 4').getByText('tenant default').waitFor();
  expect(await hit('berth 6').getByRole('link', { name: 'Open' }).count()).toBe(0);
  const members = page.getByRole('complementary', { name: 'Who was asked' });
  expect(await members.getByText('answered', { exact: true }).count()).toBe(3);
  expect(await violationsOf(page)).toEqual([]);

  const shared = page.url();
  await page.goto('about:blank');
  await page.goto(shared);
  await hit('berth 6').waitFor();
  await page.getByRole('tab', { name: 'As code' }).click();
  await page.getByText('cairn.queryFederation(').waitFor();
  await page.getByRole('tab', { name: 'Answer' }).click();

  await there.stop();
  await page.getByRole('button', { name: 'Ask', exact: true }).click();
  await show(page, here.url, shared.split('#/')[1]!);
  await members.getByText('not reached').waitFor();
  await page.getByText('Not all answered as they should').waitFor();
  await hit('berth 5').getByRole('link', { name: 'Open' }).click();
  await page.getByRole('heading', { name: 'Memory', exact: true }).waitFor();
  await page.getByText('berth 5').waitFor();

  await show(page, here.url, 'admin?tab=servers');
  await page.getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('heading', { name: 'No other server is registered' }).waitFor();
});

browserTest('the tenant is in the address, and goes with it to whoever opens it', async () => {
  await using opened = await openConsole(here.url, 'browse');
  const { page } = opened;
  await signIn(page, keyOf('read'));
  await page.getByText('berth 4').waitFor();
  await page.getByLabel('Tenant').selectOption('team');
  await page.getByText('berth 5').waitFor();
  expect(await page.getByText('berth 4').count()).toBe(0);
  expect(page.url()).toContain('tenant=team');
  await page.getByRole('link', { name: /berth 5/ }).click();
  await page.getByRole('heading', { name: 'Memory', exact: true }).waitFor();
  const shared = page.url();
  await page.getByRole('button', { name: 'Sign out' }).click();
  // A page that is left takes its requests along, also the one that ends the session.
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.goto('about:blank');
  await page.goto(shared);
  await signIn(page, keyOf('read'));
  await page.getByText('berth 5').waitFor();
  await page.getByRole('link', { name: 'Ask', exact: true }).first().click();
  await page.getByRole('searchbox', { name: 'Question' }).fill(QUESTION);
  await page.keyboard.press('Enter');
  await page.getByText('berth 5').waitFor();
  await page.getByRole('tab', { name: 'As code' }).click();
  await page.getByText(`-H 'x-cairn-tenant: team'`).waitFor();
});

browserTest('who may not have servers asked is offered none, and a tenant that is not theirs says so', async () => {
  await here.request('POST', '/federation/servers', { body: { name: 'oulu', url: 'http://127.0.0.1:9' } });
  await using opened = await openConsole(here.url, `ask?query=${encodeURIComponent(QUESTION)}`);
  const { page } = opened;
  await signIn(page, keyOf('read', { userId: 'ana' }));
  await page.getByRole('article', { name: 'Match 1' }).waitFor();
  await page.getByLabel('tenant team').waitFor();
  expect(await page.getByLabel('oulu').count()).toBe(0);
  await show(page, here.url, 'browse?tenant=foreign');
  await page.getByRole('alert').filter({ hasText: 'no access' }).first().waitFor();
});

browserTest('one whose key has a single tenant, and no servers, sees no such field', async () => {
  await using alone = await startAlone();
  await using opened = await openConsole(alone.url, 'ask?query=ferry');
  await signIn(opened.page, ADMIN_KEY);
  await opened.page.getByRole('heading', { name: 'No memory answers this' }).waitFor();
  expect(await opened.page.getByRole('group', { name: 'Also ask' }).count()).toBe(0);
});

browserTest('on a machine without keys other servers are offered, too', async () => {
  await using open = await startAlone({ OM_API_KEY: '', OM_FEDERATION_ALLOW: '127.0.0.1' });
  const server = { name: 'oulu', url: 'http://127.0.0.1:9' };
  const added = await fetch(`${open.url}/federation/servers`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(server),
  });
  expect(added.status).toBe(201);
  await using opened = await openConsole(open.url, 'ask?query=ferry');
  await opened.page.getByRole('group', { name: 'Also ask' }).getByLabel('oulu').check();
  await opened.page.getByText('not reached').waitFor();
});

async function startAlone(settings: Readonly<Record<string, string>> = {}) {
  const api = await startApi({ folder: tempFolder(), settings });
  return { url: api.url, [Symbol.asyncDispose]: () => api.stop() };
}
