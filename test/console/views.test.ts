import { afterAll, beforeAll, expect } from 'vitest';
import { browserTest, openConsole, show, signIn, useBrowser } from '../support/console-browser.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Views of what was asked, what fades, what wants deciding, and of the service, in a real Chromium. */

/** How long a document may take to be read (ms). */
const WAIT = { timeout: 120_000 };

let api: TestApi;
useBrowser();

beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), workers: true, settings: { OM_CONTRADICTIONS: 'forms' } });
});
afterAll(() => api.stop());

const post = async (route: string, body: object) => (await api.request('POST', route, { body })).body;
const remember = async (content: string, user: string) =>
  (await post('/memory/add?wait=60000', { content, user_id: user })).id;

browserTest('a key is made, shown once, used and revoked; its tenant before it', async () => {
  await using opened = await openConsole(api.url, 'admin?tab=tenants');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('button', { name: 'Make a tenant' }).click();
  await page.getByRole('dialog').getByLabel(/^Id/).fill('acme');
  await page.getByRole('button', { name: 'Make it' }).click();
  await page.getByRole('cell', { name: 'acme' }).waitFor();
  await page.getByRole('tab', { name: 'Keys' }).click();
  await page.getByRole('button', { name: 'Make a key' }).click();
  await page.getByLabel('Name that people know it by').fill('Lamp');
  await page.getByLabel('Bound to the user').fill('ana');
  await page.getByRole('button', { name: 'Make it' }).click();
  const secret = (await page.locator('code.secret').textContent())!;
  expect(api.engine.control.authenticate(secret)).toMatchObject({ role: 'write', userId: 'ana' });
  await page.getByRole('button', { name: 'Close' }).first().click();
  await show(page, api.url, 'admin');
  expect(await page.content()).not.toContain(secret);
  await page.getByRole('button', { name: 'Revoke Lamp' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByText('revoked', { exact: true }).waitFor();
  expect(api.engine.control.authenticate(secret)).toBeUndefined();
});

browserTest('what is set, and what the service did, is seen; secrets are not', async () => {
  await using opened = await openConsole(api.url, 'admin?tab=service&find=api_key');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('row', { name: /^OM_API_KEY .* set, not shown the environment/ }).waitFor();
  expect(await page.content()).not.toContain(ADMIN_KEY);
  await page.getByRole('tab', { name: 'Backups' }).click();
  await page.getByRole('heading', { name: 'No backups are scheduled' }).waitFor();
  await show(page, api.url, 'work');
  await page.getByRole('heading', { name: 'Requests a minute' }).waitFor();
  await page.getByText(/^adds \d/).waitFor();
});

browserTest('decay under another λ is looked at, and the lines that would set it are there', async () => {
  await remember('Yesterday I felt happy at the lake.', 'dan');
  await using opened = await openConsole(api.url, 'decay?lambda=0.1&below=0.3');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('heading', { name: /would be archived$/ }).waitFor();
  await page.getByText('OM_DECAY_LAMBDA=0.1').waitFor();
  await page.getByLabel('λ of all sectors, a day').fill('0');
  await page.getByLabel('λ of all sectors, a day').blur();
  await page.getByRole('heading', { name: 'None would be archived.' }).waitFor();
  expect(page.url()).toContain('lambda=0');
});

browserTest('a past answer is looked up, judged, and asked again today', async () => {
  const old = await remember('The parcel lies at the neighbour.', 'eva');
  const few = { query: 'where is the parcel?', user_id: 'eva', k: 1 };
  await remember('The other parcel is where the post office is.', 'eva');
  await post('/memory/query', few);
  const next = await remember('The parcel lies in the kitchen.', 'eva');
  await post('/memory/supersede', { old_id: old, new_id: next });
  await using opened = await openConsole(api.url, 'recalls?user_id=eva');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('link', { name: 'where is the parcel?' }).click();
  await page.getByText('The parcel lies at the neighbour.').waitFor();
  const asked = page.getByRole('complementary', { name: 'How it was asked' });
  await asked.getByRole('link', { name: 'The other parcel is where the post office is.' }).waitFor();
  await asked.getByText('It comes after the last place.').waitFor();
  await page.getByRole('button', { name: 'Used' }).click();
  await page.locator('button[aria-pressed=true]', { hasText: 'Used' }).waitFor();
  await page.getByRole('tab', { name: 'Today' }).click();
  await page.getByText('Asked today, it gets another answer.').waitFor();
  await page.getByRole('link', { name: 'The parcel lies in the kitchen.' }).waitFor();
  await show(page, api.url, `memory/${old}`);
  await page.getByRole('link', { name: 'where is the parcel?' }).waitFor();
});

browserTest('pairs are decided, and what was decided leaves the list', async () => {
  await remember('I live in Madrid.', 'fox');
  await remember('I live in Valencia.', 'fox');
  await remember('The spare key lies under the blue flower pot.', 'gus');
  await remember('The spare key lies under the blue flower pot now.', 'gus');
  await using opened = await openConsole(api.url, 'browse?view=contradictions&user_id=fox');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('button', { name: 'The later is right' }).click();
  await page.getByRole('heading', { name: 'No contradiction is proposed' }).waitFor();
  await show(page, api.url, 'browse?view=duplicates&user_id=gus&least=0.6');
  await page.getByRole('button', { name: 'Keep the later' }).click();
  await page.getByRole('heading', { name: 'No two memories are this similar' }).waitFor();
});

browserTest('an evaluation set is made, run and shown over time', async () => {
  await remember('The boat is painted red.', 'hal');
  await using opened = await openConsole(api.url, 'evals');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('button', { name: 'Make a set' }).click();
  const set = { name: 'boats', items: [{ query: 'which colour has the boat?', user_id: 'hal', expected: ['red'] }] };
  await page.getByLabel(/^As JSON/).fill(JSON.stringify(set));
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('link', { name: 'boats' }).click();
  for (const runs of [1, 2]) {
    await page.getByRole('button', { name: 'Run it now' }).click();
    await expect.poll(() => page.getByRole('region', { name: 'Runs' }).getByRole('row').count()).toBe(runs + 1);
  }
  await page.getByText('right', { exact: true }).waitFor();
  await page.getByText('found 1.00').waitFor();
  await page.getByRole('button', { name: 'Change it' }).click();
  await page.getByLabel(/^As JSON/).fill(JSON.stringify({ ...set, items: [{ query: 'any car?', expected: [] }] }));
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('cell', { name: 'any car?' }).waitFor();
  expect(await page.getByRole('columnheader', { name: 'This run' }).count()).toBe(0);
  await show(page, api.url, 'evals/boats');
  await page.getByText('Run the set to see what became of each question').waitFor();
  expect(await page.getByRole('columnheader', { name: 'This run' }).count()).toBe(0);
});

browserTest(
  'a job that gave up is seen with its reason; one that cannot start again says why, and is removed',
  async () => {
    const { document_id: id } = await post('/memory/ingest', {
      data: Buffer.from('%PDF-1.7 broken').toString('base64'),
      content_type: 'application/pdf',
      user_id: 'ivy',
    });
    await expect
      .poll(async () => (await api.request('GET', `/documents/${String(id)}`)).body['state'], WAIT)
      .toBe('failed');
    await using opened = await openConsole(api.url, 'work?state=dead');
    const { page } = opened;
    await signIn(page, ADMIN_KEY);
    const row = page.getByRole('row').filter({ hasText: 'gave up' });
    await row.getByText('damaged beyond repair').waitFor();
    await row.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('its file was removed: hand the document in again').waitFor();
    await row.getByRole('button', { name: 'Remove' }).click();
    await page.getByText('There is no such job.').waitFor();
  },
);
