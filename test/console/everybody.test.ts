import fs from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { browserTest, openConsole, violationsOf } from '../support/console-browser.ts';
import { ALL_VIEWS_MS, useFilledConsole, visitAll } from '../support/console-views.ts';

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

const filled = useFilledConsole();

browserTest(
  'no page is refused anything; axe finds nothing wrong with any, and in the dark no contrast that is too low',
  async () => {
    {
      await using opened = await openConsole(filled.api.url);
      await opened.page.getByRole('heading', { name: 'Sign in' }).waitFor();
      expect(await violationsOf(opened.page)).toEqual([]);
    }
    const found = await visitAll(filled, async (page) => {
      const light = await violationsOf(page);
      await page.emulateMedia({ colorScheme: 'dark' });
      const dark = await violationsOf(page, { rules: ['color-contrast'] });
      await page.emulateMedia({ colorScheme: 'light' });
      return [...light, ...dark];
    });
    expect(found).toEqual([]);
  },
  ALL_VIEWS_MS,
);

browserTest(
  "on a telephone's width nothing is cut off, and axe finds nothing wrong",
  async () => {
    const look = async (page: Page) => {
      const wider = Number(await page.evaluate(OVERFLOW));
      const violations = await violationsOf(page);
      return wider > 0 ? [`is ${wider} pixels wider than the window`, ...violations] : violations;
    };
    expect(await visitAll(filled, look, { width: 360 })).toEqual([]);
  },
  ALL_VIEWS_MS,
);

browserTest(
  'whoever may only read is refused nothing on any page, and is offered nothing to change',
  async () => {
    const { secret } = filled.api.engine.control.createKey({ tenantId: 'default', role: 'read' });
    const readable = { ...filled, views: filled.views.filter((view) => !/^(decay|evals|admin)/.test(view)) };
    const offered = async (page: Page) => {
      const buttons = await page.getByRole('button').allTextContents();
      return CHANGES.filter((name) => buttons.includes(name)).map((name) => `offers ${name}`);
    };
    expect(await visitAll(readable, offered, { key: secret })).toEqual([]);
  },
  ALL_VIEWS_MS,
);

test('all that the page loads is small', () => {
  const files = fs.readdirSync(path.join(BUILT, 'console')).map((name) => path.join(BUILT, 'console', name));
  const sizes = [path.join(BUILT, 'index.html'), ...files].map((file) => gzipSync(fs.readFileSync(file)).length);
  expect(sizes.reduce((sum, bytes) => sum + bytes)).toBeLessThanOrEqual(MAX_BYTES);
});
