import fs from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { browserTest, openConsole, show, signIn, useBrowser, violationsOf } from '../support/console-browser.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** The console for those who see it dark, small, by keyboard or not at all; and its size for everybody. */

/** Pixels by which a page is wider than the window. */
const OVERFLOW = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
/** Most bytes of all scripts, styles and the page, compressed one by one as they are sent. */
const MAX_BYTES = 120_000;
const BUILT = path.resolve(import.meta.dirname, '../../dist/console');

let api: TestApi;
let views: readonly string[];
useBrowser();

beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), workers: true });
  const post = async (route: string, body: object) => (await api.request('POST', route, { body })).body;
  const { id } = await post('/memory/add?wait=60000', {
    content: 'Ada Lovelace wrote notes about the engine in London. '.repeat(12),
    user_id: 'fay',
    session_id: 'history',
    tags: ['history'],
    metadata: { source: 'a book' },
  });
  await post('/memory/add?wait=60000', { content: 'Ada Lovelace lived in London.', user_id: 'fay' });
  const ingested = await post('/memory/ingest?wait=60000', { text: '# Engines\n\nA handbook.', user_id: 'fay' });
  const { recall_id: recall } = await post('/memory/query', { query: 'engine in London', user_id: 'fay' });
  await post('/evals', { name: 'engines', items: [{ query: 'engine', user_id: 'fay', expected: ['london'] }] });
  await post('/evals/engines/run', {});
  const { id: standing } = await post('/standing', { query: 'Who wrote notes?', user_id: 'fay' });
  const { id: webhook } = await post('/webhooks', { url: 'https://example.com/hook' });
  const { id: erased } = await post('/memory/add?wait=60000', { content: 'This is forgotten.', user_id: 'gil' });
  await api.request('DELETE', `/memory/${erased}`);
  const receipts = (await api.request('GET', '/erasures')).body.items;
  api.engine.control.createKey({ tenantId: 'default', role: 'read', label: 'Telephone' });
  const asked = 'ask?query=engine%20in%20London&user_id=fay';
  const tabs = ['', 'tenants', 'limits', 'settings', 'service', 'model', 'backups', 'receipts', 'audit'];
  views = [
    'ask',
    `${asked}&why=${id}&profile=activation`,
    ...['trace', 'compare', 'code'].map((tab) => `${asked}&tab=${tab}`),
    ...['about', 'history', 'links', 'time'].map((tab) => `memory/${id}?tab=${tab}`),
    ...['all', 'contradictions', 'duplicates', 'fading'].map((view) => `browse?view=${view}&least=0.1&below=0.9`),
    'documents',
    `document/${String(ingested['document_id'])}`,
    `document/${String(ingested['document_id'])}?tab=receipt`,
    'graph?user_id=fay',
    'standing',
    `standing/${String(standing)}`,
    'standing?tab=webhooks',
    `standing/${String(webhook)}?tab=webhooks`,
    'name/london?user_id=fay',
    'recalls',
    `recall/${String(recall)}`,
    `recall/${String(recall)}?tab=now`,
    'decay?lambda=0.05&below=0.2',
    'evals',
    'evals/engines',
    'evals?tab=learned',
    'work',
    ...tabs.map((tab) => `admin?tab=${tab}`),
    `admin?tab=receipts&receipt=${receipts[0]!.id}`,
  ];
}, 120_000);
afterAll(() => api.stop());

browserTest(
  'axe finds nothing wrong with any page, and in the dark no contrast that is too low',
  async () => {
    await using opened = await openConsole(api.url);
    const { page } = opened;
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await signIn(page, ADMIN_KEY);
    const found: string[] = [];
    const look = async (view: string, rules?: readonly string[]) =>
      found.push(...(await violationsOf(page, rules)).map((violation) => `${view}: ${violation}`));
    for (const view of views) {
      await show(page, api.url, view);
      await look(view);
      await page.emulateMedia({ colorScheme: 'dark' });
      await look(view, ['color-contrast']);
      await page.emulateMedia({ colorScheme: 'light' });
    }
    expect(found).toEqual([]);
  },
  300_000,
);

browserTest(
  "on a telephone's width nothing is cut off, and axe finds nothing wrong",
  async () => {
    await using opened = await openConsole(api.url, 'ask', { width: 360 });
    const { page } = opened;
    await signIn(page, ADMIN_KEY);
    const found: string[] = [];
    for (const view of views) {
      await show(page, api.url, view);
      const wider = Number(await page.evaluate(OVERFLOW));
      if (wider > 0) found.push(`${view}: is ${wider} pixels wider than the window`);
      found.push(...(await violationsOf(page)).map((violation) => `${view}: ${violation}`));
    }
    expect(found).toEqual([]);
  },
  300_000,
);

browserTest(
  'whoever may only read is refused nothing on any page, and is offered nothing to change',
  async () => {
    const { secret } = api.engine.control.createKey({ tenantId: 'default', role: 'read' });
    await using opened = await openConsole(api.url, 'ask');
    const { page } = opened;
    const refused: string[] = [];
    page.on('response', (response) => response.status() === 403 && refused.push(response.url()));
    await signIn(page, secret);
    await page.getByRole('heading', { name: 'Ask', exact: true }).waitFor();
    for (const view of views) {
      await show(page, api.url, view.replace(/^(decay|evals|admin).*/, 'ask'));
      for (const name of [
        'Edit',
        'Sector',
        'Forget',
        'Delete',
        'Revoke',
        'Make a key',
        'Keep the later',
        'Remove',
        'Ask from now on',
      ])
        expect(await page.getByRole('button', { name, exact: true }).count(), `${view} ${name}`).toBe(0);
    }
    expect(refused).toEqual([]);
  },
  300_000,
);

browserTest('the keyboard alone signs in, asks, opens a memory and walks to its neighbour', async () => {
  await using opened = await openConsole(api.url, 'ask?user_id=fay');
  const { page } = opened;
  const press = async (key: string, times = 1) => {
    for (let time = 0; time < times; time++) await page.keyboard.press(key);
  };
  await page.getByLabel('Key', { exact: true }).waitFor();
  await page.keyboard.type(ADMIN_KEY);
  await press('Enter');
  await page.getByRole('searchbox', { name: 'Question' }).focus();
  await page.keyboard.type('who wrote notes about the engine?');
  await press('Enter');
  await page.getByRole('link', { name: 'Open' }).first().focus();
  await press('Enter');
  await page.getByRole('heading', { name: 'Memory' }).waitFor();
  await page.getByRole('tab', { name: 'About' }).focus();
  await press('ArrowRight', 2);
  const map = page.getByRole('group', { name: 'Memories and names around it' });
  await map.getByRole('link').first().focus();
  await press('Enter');
  await page.getByRole('heading', { level: 1 }).waitFor();
  expect(page.url()).toMatch(/#\/(memory\/[0-9a-f-]+\?tab=links|name\/)/);
});

test('all that the page loads is small', () => {
  const files = fs.readdirSync(path.join(BUILT, 'console')).map((name) => path.join(BUILT, 'console', name));
  const sizes = [path.join(BUILT, 'index.html'), ...files].map((file) => gzipSync(fs.readFileSync(file)).length);
  expect(sizes.reduce((sum, bytes) => sum + bytes)).toBeLessThanOrEqual(MAX_BYTES);
});
