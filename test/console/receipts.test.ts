import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import Database from 'better-sqlite3';
import { browserTest, openConsole, show, signIn, useBrowser, violationsOf } from '../support/console-browser.ts';
import { createManualClock } from '../support/engine-fixture.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { teachRecency } from '../support/teach-weights.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** What the console proves and learns: receipts, corrections of sectors, weights from feedback. */

const DAY_MS = 86_400_000;

const folder = tempFolder();
let api: TestApi;
useBrowser();

beforeAll(async () => {
  api = await startApi({ folder, workers: true });
});
afterAll(() => api.stop());

const remember = async (content: string) =>
  (await api.request('POST', '/memory/add?wait=60000', { body: { content, user_id: 'ana' } })).body.id;

browserTest('forgetting tells the receipt with its salt once, and the browser checks the chain', async () => {
  await api.request('DELETE', `/memory/${await remember('Ben painted the safe green.')}`);
  const id = await remember('Ana keeps the Zanzibarite ledger in the safe.');
  await using opened = await openConsole(api.url, `memory/${id}`);
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('button', { name: 'Forget' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Forget' }).click();
  const token = (await page.locator('code.secret').textContent())!;
  expect(token).toMatch(/^[0-9a-f-]{36}\.[\w-]{22}$/);
  await page.getByText(`cairn verify-erasure ${token}`).waitFor();
  await page.getByRole('link', { name: 'Show the receipt' }).click();
  await page.getByRole('heading', { name: 'Receipt 2' }).waitFor();
  expect(await page.content()).not.toContain(token.split('.')[1]!);
  await page.getByRole('button', { name: 'Check the chain here' }).click();
  await page.getByText(/^It holds/).waitFor();
  expect(await violationsOf(page)).toEqual([]);

  const db = new Database(`${folder}/cairn.sqlite`);
  db.prepare(`UPDATE erasures SET key_id = 'nobody' WHERE chain_no = 2`).run();
  db.close();
  await show(page, api.url, 'admin?tab=receipts');
  await page.getByRole('row').filter({ hasText: 'nobody' }).getByRole('link').click();
  await page.getByRole('button', { name: 'Check the chain here' }).click();
  await page.getByText(/^It does not hold/).waitFor();
});

browserTest('the receipt of a document accounts for its text, and is verified in the browser', async () => {
  const text = '---\nteam: infra\n---\n# Ferries\n\nThe ferry to Cacilhas leaves at seven.\n';
  const { body } = await api.request('POST', '/memory/ingest?wait=60000', {
    body: { text, content_type: 'text/markdown', user_id: 'ana' },
  });
  await using opened = await openConsole(api.url, `document/${String(body['document_id'])}?tab=receipt`);
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByText('complete', { exact: true }).waitFor();
  await page.getByText('the head of the file, which became metadata').waitFor();
  await page.getByRole('button', { name: 'Verify it here' }).click();
  await page.getByText(/^Verified:/).waitFor();
  expect(await violationsOf(page)).toEqual([]);
  await page.route('**/content', (route) => route.fulfill({ contentType: 'text/plain', body: 'Another text.' }));
  await page.getByRole('button', { name: 'Verify it here' }).click();
  await page.getByText(/is not the text of the receipt/).waitFor();
});

browserTest('a sector is corrected, and the statement is kept and taken back', async () => {
  const id = await remember('First open the valve, then press the green button twice.');
  await using opened = await openConsole(api.url, `memory/${id}`);
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  const state = async (sector: string) => {
    await page.getByRole('button', { name: 'Sector' }).click();
    await page.getByRole('dialog').getByLabel('Sector').selectOption(sector);
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await page.getByText('The sector is stated').waitFor();
  };
  await state('reflective');
  const stored = async () => (await api.request('GET', `/memory/${id}`)).body;
  await expect.poll(async () => (await stored()).primary_sector).toBe('reflective');
  expect((await stored()).metadata).toEqual({ sector: 'reflective' });
  await show(page, api.url, `memory/${id}`);
  await page.locator('.of-reflective').first().waitFor();
  await state('');
  await expect.poll(async () => (await stored()).metadata).toEqual({});
});

browserTest('without feedback nothing is proposed, and the page says what is missing', async () => {
  await using opened = await openConsole(api.url, 'evals?tab=learned');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('heading', { name: 'Nothing was learned yet' }).waitFor();
  await page.getByRole('button', { name: 'Learn from feedback' }).click();
  await page.getByText(/No proposal: .*at least 40 recalls/).waitFor();
});

browserTest('weights are proposed with what they are worth, accepted, and taken back in one step', async () => {
  const clock = createManualClock(Date.now() - 90 * DAY_MS);
  const taught = await startApi({ folder: tempFolder(), clock, settings: { OM_EMBEDDINGS: 'none' } });
  onTestFinished(() => taught.stop());
  await teachRecency(taught, clock);
  // The browser, which has a clock of its own, would take a session of the past for ended.
  clock.set(Date.now());
  await using opened = await openConsole(taught.url, 'evals?tab=learned');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('button', { name: 'Learn from feedback' }).click();
  await page.getByText('proposed', { exact: true }).first().waitFor();
  await page.getByRole('row', { name: /used above useless/ }).waitFor();
  expect(await violationsOf(page)).toEqual([]);
  const defaults = async () => (await taught.request('GET', '/settings/retrieval')).body;
  expect(await defaults()).toEqual({});
  await page.getByRole('button', { name: 'Accept' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Accept' }).click();
  await page.getByText('in use', { exact: true }).waitFor();
  expect(await defaults()).toMatchObject({ weights: { recency: expect.any(Number) as number } });
  await page.getByRole('button', { name: 'Take back' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Take back' }).click();
  await page.getByText('taken back', { exact: true }).waitFor();
  expect(await defaults()).toEqual({});
});
