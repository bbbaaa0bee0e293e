import { afterAll, beforeAll, expect } from 'vitest';
import { tendStandingUntil } from '../../src/api/run-standing.ts';
import { browserTest, openConsole, show, signIn, useBrowser, violationsOf } from '../support/console-browser.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { startReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts';

/** Standing queries and webhooks in the console, with a receiver on this machine. */

let api: TestApi;
let receiver: WebhookReceiver;
const stop = new AbortController();
useBrowser();

beforeAll(async () => {
  const settings = { OM_WEBHOOK_ALLOW: '127.0.0.1', OM_WEBHOOK_ATTEMPTS: '1' };
  api = await startApi({ folder: tempFolder(), workers: true, settings });
  receiver = await startReceiver();
  void tendStandingUntil(stop.signal, api.engine);
});
afterAll(async () => {
  stop.abort();
  await api.stop();
  await receiver[Symbol.asyncDispose]();
});

const remember = async (content: string, user: string) =>
  (await api.request('POST', '/memory/add?wait=60000', { body: { content, user_id: user } })).body.id;

browserTest('a question is asked once, its answer appears and is delivered, and it is removed', async () => {
  await using opened = await openConsole(api.url, 'standing');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('heading', { name: 'No question stands' }).waitFor();
  await page.getByRole('button', { name: 'Ask from now on' }).click();
  await page.getByLabel('Question').fill('Where does Ana work?');
  await page.getByLabel('User').fill('ana');
  await page.getByLabel('Address that is told, if any').fill(receiver.url);
  await page.getByRole('button', { name: 'Save' }).click();
  const secret = (await page.locator('code.secret').textContent())!;
  expect(secret).toMatch(/^whsec_/);
  expect(await violationsOf(page)).toEqual([]);
  const memory = await remember('Ana works at the harbour office in Porto.', 'ana');
  await page.getByRole('link', { name: 'Where does Ana work?' }).click();
  await page.getByRole('link', { name: 'Ana works at the harbour office in Porto.' }).waitFor();
  await page.getByText('Written by key').waitFor();
  const [message] = await receiver.untilReceived(1);
  expect(message!.body.data['id']).toBe(memory);

  await show(page, api.url, 'standing?tab=webhooks');
  expect(await page.content()).not.toContain(secret);
  await page.getByRole('link', { name: receiver.url }).click();
  await page.getByText('Written by key').waitFor();
  await page.getByRole('row').filter({ hasText: 'standing.answered' }).getByText('delivered').waitFor();
  expect(await violationsOf(page)).toEqual([]);

  await show(page, api.url, 'standing');
  await page.getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('heading', { name: 'No question stands' }).waitFor();
  expect((await api.request('GET', '/webhooks')).body.total).toBe(0);
});

browserTest('a webhook of some kinds is added, what gave up says why and is tried again', async () => {
  receiver.messages.length = 0;
  await using opened = await openConsole(api.url, 'standing?tab=webhooks');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('heading', { name: 'No address is told of anything' }).waitFor();
  await page.getByRole('button', { name: 'Add a webhook' }).click();
  await page.getByLabel('Address').fill('https://127.0.0.2/hook');
  await page.getByRole('button', { name: 'Save' }).click();
  await page
    .getByText(/OM_WEBHOOK_ALLOW/)
    .nth(1)
    .waitFor();
  await page.getByLabel('Address').fill(receiver.url);
  await page.getByLabel('memory.ready').check();
  await page.getByRole('button', { name: 'Save' }).click();
  const secret = (await page.locator('code.secret').textContent())!;
  expect(secret).toMatch(/^whsec_/);
  await page.getByRole('button', { name: 'Close' }).first().click();
  expect(await page.content()).not.toContain(secret);

  receiver.answers.push(500);
  await remember('The lamp in the hall is broken.', 'ben');
  await page.getByRole('link', { name: receiver.url }).click();
  const delivery = page.getByRole('row').filter({ hasText: 'memory.ready' });
  await delivery.getByText('gave up').waitFor();
  await delivery.getByText('500').waitFor();
  await page.getByRole('button', { name: 'Try again what gave up' }).click();
  await delivery.getByText('delivered').waitFor();
  expect(receiver.messages.map(({ id }) => id)).toEqual([receiver.messages[0]!.id, receiver.messages[0]!.id]);
  await page.getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('heading', { name: 'No address is told of anything' }).waitFor();
});

browserTest('who may only read sees both and changes neither; tags say why there is nothing', async () => {
  await api.request('POST', '/standing', { body: { query: 'Who feeds the cat?', user_id: 'cat' } });
  const reader = api.engine.control.createKey({ tenantId: 'default', role: 'read' }).secret;
  {
    await using opened = await openConsole(api.url, 'standing');
    await signIn(opened.page, reader);
    await opened.page.getByRole('link', { name: 'Who feeds the cat?' }).waitFor();
    for (const name of ['Ask from now on', 'Remove'])
      expect(await opened.page.getByRole('button', { name }).count(), name).toBe(0);
  }
  const tagged = api.engine.control.createKey({ tenantId: 'default', role: 'write', tags: ['cats'] }).secret;
  await using opened = await openConsole(api.url, 'standing');
  await signIn(opened.page, tagged);
  await opened.page.getByRole('heading', { name: /bound to tags/ }).waitFor();
});
