import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { Page } from 'playwright-core';
import { browserTest, openConsole, show, signIn, useBrowser, violationsOf } from '../support/console-browser.ts';
import { startFilledConsole } from '../support/console-views.ts';
import { ADMIN_KEY, type TestApi } from '../support/start-api.ts';

/** The console without a mouse. */

let api: TestApi;
let views: readonly string[];
useBrowser();

beforeAll(async () => {
  ({ api, views } = await startFilledConsole());
}, 120_000);
afterAll(() => api.stop());

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

/** Notes each element that gets the focus, and whether one sees that it has it. */
const WATCH_FOCUS = `(() => {
  const reached = new Map();
  const isOutlined = (element) => {
    const { outlineStyle, outlineWidth, stroke } = getComputedStyle(element);
    return (outlineStyle !== 'none' && parseFloat(outlineWidth) > 0) || (element.closest('svg') && stroke !== 'none');
  };
  document.addEventListener('focusin', ({ target }) => {
    // A field that is cut away shows nothing itself; its label does.
    const own = target.matches('.hidden') ? [] : [target];
    const shapes = [...own, target.closest('label'), ...target.querySelectorAll('circle, rect')].filter(Boolean);
    reached.set(target, shapes.some(isOutlined));
  });
  window.focusFound = () => {
    const all = 'a[href], button:enabled, input:enabled, select:enabled, textarea:enabled, summary, [tabindex="0"]';
    const wanted = [...document.querySelectorAll(all)].filter(
      (element) => element.tabIndex >= 0 && element.checkVisibility() && !element.closest('[inert]'),
    );
    const named = (element) => element.outerHTML.slice(0, 120);
    return {
      missing: wanted.filter((element) => !reached.has(element)).map(named),
      unseen: [...reached].filter(([, isSeen]) => !isSeen).map(([element]) => named(element)),
    };
  };
  window.focusIsBack = () => document.activeElement === document.body && reached.size > 0;
})()`;

browserTest(
  'on every page each control is reached by Tab, in a finite walk, and shows that it has the focus',
  async () => {
    await using opened = await openConsole(api.url, 'ask');
    const { page } = opened;
    await signIn(page, ADMIN_KEY);
    await page.getByRole('heading', { name: 'Ask', exact: true }).waitFor();
    const found: string[] = [];
    for (const view of views) {
      await show(page, api.url, view);
      await page.evaluate(WATCH_FOCUS);
      let isBack = false;
      for (let presses = 0; !isBack && presses < 500; presses++) {
        await page.keyboard.press('Tab');
        isBack = await page.evaluate('focusIsBack()');
      }
      const { missing, unseen } = await page.evaluate<Record<'missing' | 'unseen', string[]>>('focusFound()');
      if (!isBack) found.push(`${view}: the walk has no end`);
      found.push(...missing.map((element) => `${view}: never reached ${element}`));
      found.push(...unseen.map((element) => `${view}: no sign of the focus on ${element}`));
    }
    expect(found).toEqual([]);
  },
  300_000,
);

describe('dialogs', () => {
  /** Views with the buttons that open a dialog. */
  const DIALOGS: readonly (readonly [path: RegExp, buttons: readonly string[]])[] = [
    [/^memory\/.*tab=about/, ['Edit', 'Sector', 'Supersede', 'Contradict', 'Forget']],
    [/^browse\?view=all&least/, ['Add a memory']],
    [/^browse\?view=gathered$/, ['Undo', 'Undo its whole run']],
    [/^document\/[^?]*$/, ['Delete']],
    [/^standing$/, ['Ask from now on', 'Remove']],
    [/^standing\?tab=webhooks/, ['Add a webhook', 'Remove']],
    [/^evals$/, ['Make a set']],
    [/^evals\/engines/, ['Change it', 'Delete']],
    [/^admin\?tab=$/, ['Make a key', 'Revoke Telephone']],
    [/^admin\?tab=tenants/, ['Make a tenant']],
    [/^admin\?tab=servers/, ['Register a server', 'Remove']],
  ];

  browserTest(
    'open by Enter, take the focus, please axe, and close by Escape, which gives the focus back',
    async () => {
      await using opened = await openConsole(api.url, 'ask');
      const { page } = opened;
      await signIn(page, ADMIN_KEY);
      await page.getByRole('heading', { name: 'Ask', exact: true }).waitFor();
      for (const [path, buttons] of DIALOGS) {
        await show(
          page,
          api.url,
          views.find((view) => path.test(view))!,
        );
        for (const name of buttons) await openAndLeave(page, name);
      }
    },
    300_000,
  );

  async function openAndLeave(page: Page, name: string): Promise<void> {
    const button = page.getByRole('button', { name, exact: true }).first();
    await button.focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.waitFor();
    expect(await dialog.and(page.locator(':focus-within')).count(), name).toBe(1);
    expect(await violationsOf(page), name).toEqual([]);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(await button.and(page.locator(':focus')).count(), name).toBe(1);
  }
});

browserTest('tabs, lists, files and the map answer to keys', async () => {
  await using opened = await openConsole(api.url, 'admin');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('tab', { name: 'Keys' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.getByRole('tab', { name: 'Tenants', selected: true }).waitFor();
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Tenants');
  await page.keyboard.press('ArrowLeft');
  await page.getByRole('tab', { name: 'Keys', selected: true }).waitFor();

  await show(page, api.url, 'documents');
  await page.locator('input[type=file]').focus();
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.keyboard.press('Enter')]);
  await chooser.setFiles({ name: 'keys.md', mimeType: 'text/markdown', buffer: Buffer.from('# Keys\n\nBy keyboard.') });
  await page.getByRole('row').filter({ hasText: /keys/i }).getByText('ready').waitFor();

  await show(page, api.url, 'browse');
  await page.getByRole('checkbox', { name: /^Select: Ada Lovelace lived/ }).focus();
  await page.keyboard.press('Space');
  await page.getByText('1 memory selected').waitFor();

  await show(page, api.url, 'graph?user_id=fay');
  await page.locator('canvas[data-settled]').waitFor();
  const picture = () => page.evaluate<string>('document.querySelector("canvas").toDataURL()');
  await page.locator('canvas').focus();
  for (const key of ['+', 'ArrowLeft', '-', 'ArrowUp']) {
    const before = await picture();
    await page.keyboard.press(key);
    await expect.poll(picture, { message: key }).not.toBe(before);
  }
  await page.getByRole('slider').focus();
  const before = await picture();
  await page.keyboard.press('Home');
  await expect.poll(picture).not.toBe(before);
  await expect.poll(() => page.url()).toContain('until=');
});
