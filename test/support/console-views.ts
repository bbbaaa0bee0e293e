import type { Page } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { openConsole, show, signIn, useBrowser } from './console-browser.ts';
import { ADMIN_KEY, startApi, type TestApi } from './start-api.ts';
import { tempFolder } from './temp-folder.ts';

/** A service with data for every view of the console. `views` are the addresses of the views, after the `#/`. */
export interface FilledConsole {
  api: TestApi;
  views: readonly string[];
}

/**
 * Longest time in which a test may visit all views (ms). It only bounds a test that hangs, as ten tests may share a
 * core.
 */
export const ALL_VIEWS_MS = 900_000;

/** Starts a browser and a filled console for the tests of a file, and ends both after them. */
export function useFilledConsole(): FilledConsole {
  const filled = {} as FilledConsole;
  useBrowser();
  beforeAll(async () => void Object.assign(filled, await startFilledConsole()));
  afterAll(() => filled.api.stop());
  return filled;
}

interface VisitOptions {
  /** Key with which the browser signs in; by default that of the admin. */
  readonly key?: string;
  readonly width?: number;
}

/**
 * Signs in and opens the views one after another.
 * @param look returns the problems that it finds in a view
 * @returns all problems, each with its view
 */
export async function visitAll(
  { api, views }: FilledConsole,
  look: (page: Page, view: string) => Promise<readonly string[]>,
  { key = ADMIN_KEY, width = 1280 }: VisitOptions = {},
): Promise<string[]> {
  await using opened = await openConsole(api.url, 'ask', { width });
  const { page } = opened;
  await signIn(page, key);
  await page.getByRole('heading', { name: 'Ask', exact: true }).waitFor();
  const found: string[] = [];
  page.on('response', (response) => {
    if (response.status() >= 400) found.push(`${page.url()}: ${response.status()} for ${response.url()}`);
  });
  for (const view of views) {
    await show(page, api.url, view);
    found.push(...(await look(page, view)).map((problem) => `${view}: ${problem}`));
  }
  return found;
}

/**
 * Starts a service with data for every view of the console.
 * @returns the service, with the addresses of the views after their `#/`
 */
async function startFilledConsole(): Promise<FilledConsole> {
  const api = await startApi({
    folder: tempFolder(),
    workers: true,
    settings: { OM_FEDERATION_ALLOW: '127.0.0.1' },
  });
  const post = async (route: string, body: object) => (await api.request('POST', route, { body })).body;
  const { id } = await post('/memory/add?wait=60000', {
    content: 'Ada Lovelace wrote notes about the engine in London. '.repeat(12),
    user_id: 'fay',
    session_id: 'history',
    tags: ['history'],
    metadata: { source: 'a book' },
  });
  await post('/memory/add?wait=60000', { content: 'Ada Lovelace lived in London.', user_id: 'fay' });
  for (const end of ['.', ', and in winter too.'])
    await post('/memory/add?wait=60000', {
      content: `Hal swims every Monday morning at the city pool before work${end}`,
      user_id: 'hal',
    });
  await post('/consolidations?wait=60000', { user_id: 'hal' });
  const ingested = await post('/memory/ingest?wait=60000', { text: '# Engines\n\nA handbook.', user_id: 'fay' });
  const { recall_id: recall } = await post('/memory/query', { query: 'engine in London', user_id: 'fay' });
  await post('/evals', { name: 'engines', items: [{ query: 'engine', user_id: 'fay', expected: ['london'] }] });
  await post('/evals/engines/run', {});
  const { id: standing } = await post('/standing', { query: 'Who wrote notes?', user_id: 'fay' });
  const { id: webhook } = await post('/webhooks', {
    url: `https://example.com/hooks/${'of-a-long-address'.repeat(8)}`,
  });
  // Nobody answers at this address.
  await post('/federation/servers', { name: 'away', url: 'http://127.0.0.1:9' });
  const { id: erased } = await post('/memory/add?wait=60000', { content: 'This is forgotten.', user_id: 'gil' });
  await api.request('DELETE', `/memory/${erased}`);
  const receipts = (await api.request('GET', '/erasures')).body.items;
  api.engine.control.createKey({ tenantId: 'default', role: 'read', label: 'Telephone' });
  const asked = 'ask?query=engine%20in%20London&user_id=fay';
  const tabs = ['', 'tenants', 'limits', 'settings', 'service', 'model', 'backups', 'servers', 'receipts', 'audit'];
  const views = [
    'ask',
    `${asked}&why=${id}&profile=activation`,
    ...['trace', 'compare', 'code'].map((tab) => `${asked}&tab=${tab}`),
    ...['', '&tab=code'].map((tab) => `${asked}&servers=away${tab}`),
    ...['about', 'history', 'links', 'time'].map((tab) => `memory/${id}?tab=${tab}`),
    ...['all', 'contradictions', 'duplicates', 'fading'].map((view) => `browse?view=${view}&least=0.1&below=0.9`),
    'browse?view=all&order=event_time',
    'browse?view=changes',
    'browse?view=gathered',
    'browse?view=gathered&look=true',
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
  return { api, views };
}
