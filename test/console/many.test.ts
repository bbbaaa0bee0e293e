import { afterAll, beforeAll, expect } from 'vitest';
import { browserTest, openConsole, show, signIn, useBrowser } from '../support/console-browser.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Several memories at once, names with counts, and documents that are dropped and read again. */

let api: TestApi;
useBrowser();

beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), workers: true });
});
afterAll(() => api.stop());

const remember = async (content: string, fields: object = {}) =>
  (await api.request('POST', '/memory/add?wait=60000', { body: { content, user_id: 'sel', ...fields } })).body.id;
const read = async (id: string) => (await api.request('GET', `/memory/${id}`)).body;

browserTest('a selection is tagged, archived and forgotten, with its receipts', async () => {
  const first = await remember('The heron stands in the water.', { tags: ['birds'] });
  const second = await remember('The stork nests on the chimney.');
  const third = await remember('The owl sleeps in the barn.');
  await using opened = await openConsole(api.url, 'browse?user_id=sel');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  const select = async (...names: readonly string[]) => {
    for (const name of names) await page.getByRole('checkbox', { name }).check();
  };
  await select('Select: The heron', 'Select: The stork');
  await page.getByRole('button', { name: 'Tag', exact: true }).click();
  await page.getByRole('dialog').getByLabel('Tags').fill('water, nests');
  await page.getByRole('dialog').getByRole('button', { name: 'Tag' }).click();
  await page.getByText('Done: 2 memories.').waitFor();
  expect((await read(first))['tags']).toEqual(['birds', 'water', 'nests']);
  expect((await read(third))['tags']).toEqual([]);

  await select('Select: The owl');
  await page.getByRole('button', { name: 'Archive' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Archive' }).click();
  await page.getByText('Done: 1 memory.').waitFor();
  expect((await read(third))['status']).toBe('archived');

  // The rows move up once the list is loaded again; a click before it may meet the row of another memory.
  await page.getByText('2 memories loaded, ').waitFor();
  await select('Select: The heron', 'Select: The stork');
  await page.getByRole('button', { name: 'Forget' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Forget' }).click();
  const tokens = (await page.locator('code.secret').textContent())!.split('\n');
  expect(tokens).toHaveLength(2);
  for (const id of [first, second]) expect((await api.request('GET', `/memory/${id}`)).status).toBe(404);
  const kept = (await api.request('GET', '/erasures')).body.items.map(({ id }) => id);
  expect(tokens.map((token) => token.split('.')[0]).toSorted()).toEqual(kept.toSorted());
});

browserTest('names have counts, and their kind and the filter are in the address that is shared', async () => {
  await remember('The ferry has a bar.', { user_id: 'tag', tags: ['ferry'] });
  await remember('The tram has none.', { user_id: 'tag', tags: ['tram'] });
  await using opened = await openConsole(api.url, 'browse?user_id=tag&names=tags');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  const names = page.getByRole('complementary', { name: 'Kept under' });
  await names.getByRole('listitem').filter({ hasText: 'ferry' }).getByText('1').waitFor();
  await names.getByRole('button', { name: 'tram' }).click();
  await page.getByText('The tram has none.').waitFor();
  await page.getByText('The ferry has a bar.').waitFor({ state: 'detached' });
  const shared = page.url();
  await page.goto('about:blank');
  await page.goto(shared);
  await page.getByText('The tram has none.').waitFor();
  expect(await page.getByText('The ferry has a bar.').count()).toBe(0);
  await names.getByRole('button', { name: 'ferry' }).waitFor();
});

/** Drops onto the page, as a mouse does, what a statement has put into `dropped`. */
const dropOf = (statement: string) => `(() => {
  const dropped = new DataTransfer();
  ${statement};
  const zone = document.querySelector('.drop');
  for (const type of ['dragover', 'drop'])
    zone.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: dropped }));
})()`;
const FILE = `dropped.items.add(new File(['# Herons\\n\\nHerons eat frogs.'], 'herons.md', { type: 'text/markdown' }))`;
const LINK = `dropped.setData('text/uri-list', '# a comment\\r\\nhttp://127.0.0.1:1/link\\r\\n')`;

browserTest('files and links that are dropped are read, and read again; what may not be fetched says why', async () => {
  await using opened = await openConsole(api.url, 'documents');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByText('Drop files or links here').waitFor();
  await page.evaluate(dropOf(FILE));
  const row = page
    .getByRole('row')
    .filter({ hasText: 'herons.md' })
    .or(page.getByRole('row').filter({ hasText: 'Herons' }));
  await row.first().getByText('ready').waitFor();
  await row.first().getByRole('link').first().click();
  await page.getByText('Herons eat frogs.').waitFor();
  await page.getByRole('button', { name: 'Read again' }).click();
  await page.getByText('0 new, 1 kept, 0 removed').waitFor();
  await page.getByRole('button', { name: 'In the text' }).click();
  await page.locator('mark', { hasText: 'Herons eat frogs.' }).waitFor();

  await show(page, api.url, 'documents');
  await page.getByLabel('Or the address of a page').fill('http://127.0.0.1:1/page');
  await page.getByRole('button', { name: 'Read it' }).click();
  await page.getByRole('row').filter({ hasText: '127.0.0.1' }).getByText('failed').waitFor();
  await page.evaluate(dropOf(LINK));
  await page.getByRole('row').filter({ hasText: '127.0.0.1:1/link' }).getByText('failed').waitFor();
});

browserTest('a document that is read again keeps its expiry, its time and the name of its file', async () => {
  const kept = { expires_at: Date.now() + 30 * 86_400_000, event_time: 1_560_000_000_000, file_name: 'storks.md' };
  const file = {
    data: '# Storks\n\nStorks nest on roofs.',
    content_type: 'text/markdown',
    type: 'bird',
    tags: ['roof'],
  };
  const { body } = await api.request('POST', '/memory/ingest?wait=60000', { body: { ...file, ...kept } });
  await using opened = await openConsole(api.url, `document/${String(body['document_id'])}`);
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('button', { name: 'Read again' }).click();
  await page.getByText('0 new, 1 kept, 0 removed').waitFor();
  const { body: after } = await api.request('GET', `/documents/${String(body['document_id'])}`);
  expect(after).toMatchObject({ ...kept, type: 'bird', tags: ['roof'], title: 'Storks' });
});

browserTest('parts without a heading are told by their words; a list says why it is empty', async () => {
  const { body } = await api.request('POST', '/memory/ingest?wait=60000', { body: { text: 'Owls hoot at night.' } });
  await using opened = await openConsole(api.url, `document/${String(body['document_id'])}`);
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('list', { name: 'Parts' }).getByText('Owls hoot at night.').waitFor();
  await show(page, api.url, 'documents?user_id=nobody');
  await page.getByRole('heading', { name: 'No document matches' }).waitFor();
  await page.getByRole('link', { name: 'Clear filters' }).click();
  await page.getByRole('row').filter({ hasText: 'ready' }).first().waitFor();
  await page.goto(`${api.url}/console#/name/nobody`);
  await page.getByRole('link', { name: 'All names' }).click();
  await page.getByLabel('Kept under').and(page.getByRole('combobox')).waitFor();
  expect(await page.title()).toBe('Memories · Cairn');
});
