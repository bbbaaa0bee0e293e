import { afterAll, beforeAll, expect } from 'vitest';
import { filtersSchema } from '../../src/api/schemas/query.ts';
import { browserTest, openConsole, show, signIn, useBrowser } from '../support/console-browser.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** What is set on a page stands in its address, so that the view can be shared; and every filter can be set. */

let api: TestApi;
useBrowser();

beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), workers: true });
});
afterAll(() => api.stop());

const post = async (route: string, body: object) => (await api.request('POST', route, { body })).body;

/** Filters that are other names of further ones, or that a list has no use for. */
const NO_FIELD = ['sector', 'user_id', 'min_score', 'startTime', 'endTime', 'users'];
/** Labels of the fields of the list, with what is put in. */
const FIELDS: Readonly<Record<string, readonly [label: string, value: string]>> = {
  tags: ['Tags', 'a'],
  sessions: ['Session', 'b'],
  'created_at.from': ['Added from', '2026-01-01'],
  'created_at.to': ['Added before', '2026-02-01'],
  types: ['Types', 'c'],
  external_ids: ['External id', 'd'],
  written_by: ['Written by key', 'e'],
  documents: ['Ids of documents', '01a1feb9-11f2-7362-8b9d-88949a451b09'],
  files: ['Files in it', 'src/main.ts'],
  namespace: ['Namespace', 'app.f'],
  min_salience: ['Salience from', '0.25'],
  metadata: ['Metadata', '{"team": "g"}'],
  'event_time.from': ['Happened from', '2026-03-01'],
  'event_time.to': ['Happened before', '2026-04-01'],
};

browserTest('the list of memories has every filter of the API, each in the address', async () => {
  await using opened = await openConsole(api.url, 'browse');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByText('More filters').click();
  const search = page.getByRole('search');
  for (const [label, value] of Object.values(FIELDS)) {
    await search.getByLabel(label, { exact: true }).fill(value);
    await page.keyboard.press('Enter');
  }
  await search.getByLabel('Sector').selectOption('semantic');
  await search.getByLabel('Status').selectOption('archived');
  await search.getByLabel('Order').selectOption('event_time');
  await search.getByLabel('Direction').selectOption('asc');
  await page.getByRole('heading', { name: 'No memory matches' }).waitFor();
  // In a page of its own, as requests that this page gave up may still be told of.
  const other = await opened.context.newPage();
  const asked = other.waitForRequest('**/memory/list');
  await other.goto(page.url());
  const body = (await asked).postDataJSON() as { readonly filters: Record<string, unknown> };
  await other.getByRole('heading', { name: 'No memory matches' }).waitFor();
  expect(body).toMatchObject({
    order: 'asc',
    order_by: 'event_time',
    filters: {
      sectors: ['semantic'],
      statuses: ['archived'],
      min_salience: 0.25,
      metadata: { team: 'g' },
      event_time: { from: '2026-03-01', to: '2026-04-01' },
    },
  });
  const settable = Object.keys(filtersSchema.shape).filter((name) => !NO_FIELD.includes(name));
  expect(Object.keys(body.filters).toSorted()).toEqual(settable.toSorted());
  await page.getByRole('link', { name: 'Clear filters' }).click();
  await page.getByRole('heading', { name: 'Nothing is stored yet' }).waitFor();
});

browserTest('a part of a document, and the session of a memory, are shared by the address', async () => {
  const text = '# Herons\n\nHerons eat frogs.\n\n# Storks\n\nStorks eat snakes.';
  const { document_id: id } = await post('/memory/ingest?wait=60000', { text, content_type: 'text/markdown' });
  const memory = await post('/memory/add?wait=60000', { content: 'It rains.', session_id: 's1', user_id: 'ana' });
  await post('/memory/add?wait=60000', { content: 'It snows.', session_id: 's2', user_id: 'ana' });
  await using opened = await openConsole(api.url, `document/${String(id)}`);
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('button', { name: 'In the text' }).last().click();
  await page.locator('mark').waitFor();
  const marked = await page.locator('mark').textContent();
  const shared = page.url();
  await show(page, api.url, 'ask');
  await page.goto(shared);
  await page.locator('mark', { hasText: marked! }).waitFor();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Whole text' }).click(),
  ]);
  expect(download.suggestedFilename()).toMatch(/\.md$/);

  await show(page, api.url, `memory/${memory.id}?tab=time`);
  await page.getByText('It snows.').waitFor();
  await page.getByLabel('Only its session').check();
  await page.getByText('It snows.').waitFor({ state: 'detached' });
  const session = page.url();
  await show(page, api.url, 'ask');
  await page.goto(session);
  await page.getByText('No other memory of this user is near it in time.').waitFor();
  expect(await page.getByText('It snows.').count()).toBe(0);
});

/** Types into the field of tags in the moment in which it appears. */
const TYPE_AT_ONCE = `new MutationObserver((_, observer) => {
  const input = [...document.querySelectorAll('label')].find(({ textContent }) => textContent === 'Tags')?.control;
  if (input == null) return;
  observer.disconnect();
  input.value = 'heron';
  input.dispatchEvent(new Event('input', { bubbles: true }));
}).observe(document, { childList: true, subtree: true })`;

browserTest('what is typed as soon as a field is there stays', async () => {
  await using opened = await openConsole(api.url, 'ask');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('heading', { level: 1, name: 'Ask' }).waitFor();
  await page.addInitScript(TYPE_AT_ONCE);
  // The list is asked for by what runs after the first paint.
  const listed = page.waitForResponse('**/memory/list');
  await show(page, api.url, 'browse');
  await listed;
  expect(await page.getByRole('search').getByLabel('Tags').inputValue()).toBe('heron');
});

browserTest('a field counts once it is left, and not with every letter', async () => {
  await using opened = await openConsole(api.url, 'browse');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  const tags = page.getByRole('search').getByLabel('Tags');
  await tags.pressSequentially('heron');
  expect(page.url()).not.toContain('tags');
  await page.keyboard.press('Tab');
  await expect.poll(() => page.url()).toContain('tags=heron');
  await page.goBack();
  await expect.poll(() => page.url()).not.toContain('tags');
  await expect.poll(() => tags.inputValue()).toBe('');
});
