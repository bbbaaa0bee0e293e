import fs from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { browserTest, openConsole, show, signIn, useBrowser, violationsOf } from '../support/console-browser.ts';
import { startFilledConsole } from '../support/console-views.ts';
import { ADMIN_KEY, type TestApi } from '../support/start-api.ts';

/** The console for those who see it dark, small, by keyboard or not at all; and its size for everybody. */

/** Pixels by which a page is wider than the window. */
const OVERFLOW = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
/** Most bytes of all scripts, styles and the page, compressed one by one as they are sent. */
const MAX_BYTES = 120_000;
const BUILT = path.resolve(import.meta.dirname, '../../dist/console');

/** Buttons that change something, or that need more than reading. */
const CHANGES = [
  'Edit',
  'Sector',
  'Forget',
  'Archive',
  'Delete',
  'Revoke',
  'Make a key',
  'Keep the later',
  'Remove',
  'Ask from now on',
  'Add a memory',
  'Add a webhook',
  'Register a server',
  'Look what could be gathered',
  'Gather them',
  'Undo',
  'Undo its whole run',
  'Try again',
  'Read again',
];

let api: TestApi;
let views: readonly string[];
useBrowser();

beforeAll(async () => {
  ({ api, views } = await startFilledConsole());
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
      for (const name of CHANGES)
        expect(await page.getByRole('button', { name, exact: true }).count(), `${view} ${name}`).toBe(0);
    }
    expect(refused).toEqual([]);
  },
  300_000,
);

test('all that the page loads is small', () => {
  const files = fs.readdirSync(path.join(BUILT, 'console')).map((name) => path.join(BUILT, 'console', name));
  const sizes = [path.join(BUILT, 'index.html'), ...files].map((file) => gzipSync(fs.readFileSync(file)).length);
  expect(sizes.reduce((sum, bytes) => sum + bytes)).toBeLessThanOrEqual(MAX_BYTES);
});
