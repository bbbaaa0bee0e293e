import { describe, expect } from 'vitest';
import type { Page } from 'playwright-core';
import { browserTest, openConsole, show, signIn, violationsOf } from '../support/console-browser.ts';
import { ALL_VIEWS_MS, useFilledConsole, visitAll } from '../support/console-views.ts';
import { ADMIN_KEY } from '../support/start-api.ts';

/** The console without a mouse. */

const filled = useFilledConsole();

browserTest('the keyboard alone signs in, asks, opens a memory and walks to its neighbour', async () => {
  await using opened = await openConsole(filled.api.url, 'ask?user_id=fay');
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
  // The next Tab goes on in the new page, and not behind the link that is gone.
  expect(await page.evaluate('[document.activeElement.id, scrollY]')).toEqual(['main', 0]);
  await press('Tab');
  expect(await page.locator('main :focus').count()).toBe(1);
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
  window.controls = () => {
    const all = 'a[href], button:enabled, input:enabled, select:enabled, textarea:enabled, summary, [tabindex="0"]';
    return [...document.querySelectorAll(all)].filter(
      (element) => element.tabIndex >= 0 && element.checkVisibility() && !element.closest('[inert]'),
    );
  };
  window.focusFound = () => {
    const wanted = controls();
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
    const found = await visitAll(filled, async (page) => {
      await page.evaluate(WATCH_FOCUS);
      // The walk takes a press for each control at least; the page is asked after each of those that follow.
      const controls = Number(await page.evaluate('controls().length'));
      for (let presses = 0; presses < controls; presses++) await page.keyboard.press('Tab');
      let isBack = false;
      for (let presses = controls; !isBack && presses < 500; presses++) {
        await page.keyboard.press('Tab');
        isBack = await page.evaluate('focusIsBack()');
      }
      const { missing, unseen } = await page.evaluate<Record<'missing' | 'unseen', string[]>>('focusFound()');
      return [
        ...(isBack ? [] : ['the walk has no end']),
        ...missing.map((element) => `never reached ${element}`),
        ...unseen.map((element) => `no sign of the focus on ${element}`),
      ];
    });
    expect(found).toEqual([]);
  },
  ALL_VIEWS_MS,
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
      const buttonsOf = (view: string) => DIALOGS.find(([path]) => path.test(view))?.[1] ?? [];
      const views = DIALOGS.map(([path]) => filled.views.find((view) => path.test(view))!);
      const found = await visitAll({ ...filled, views }, async (page, view) => {
        for (const name of buttonsOf(view)) await openAndLeave(page, name);
        return [];
      });
      expect(found).toEqual([]);
    },
    ALL_VIEWS_MS,
  );

  async function openAndLeave(page: Page, name: string): Promise<void> {
    const button = page.getByRole('button', { name, exact: true }).first();
    await button.focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.waitFor();
    expect(await dialog.and(page.locator(':focus-within')).count(), name).toBe(1);
    expect(await violationsOf(page, { within: 'dialog' }), name).toEqual([]);
    await page.keyboard.press('Escape');
    // A dialog that has closed is told of it in a later task, which would close the next one if that were open by then.
    await page.locator('dialog').waitFor({ state: 'detached' });
    expect(await button.and(page.locator(':focus')).count(), name).toBe(1);
  }
});

browserTest('tabs, lists, files and the map answer to keys', async () => {
  await using opened = await openConsole(filled.api.url, 'admin');
  const { page } = opened;
  await signIn(page, ADMIN_KEY);
  await page.getByRole('tab', { name: 'Keys' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.getByRole('tab', { name: 'Tenants', selected: true }).waitFor();
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Tenants');
  await page.keyboard.press('ArrowLeft');
  await page.getByRole('tab', { name: 'Keys', selected: true }).waitFor();

  await show(page, filled.api.url, 'documents');
  // Keys reach the page by another way than commands. Once the page has answered the command that gives the focus, it
  // also knows that the chooser is waited for.
  const chosen = page.waitForEvent('filechooser');
  await page.locator('input[type=file]').focus();
  await page.keyboard.press('Enter');
  const chooser = await chosen;
  await chooser.setFiles({ name: 'keys.md', mimeType: 'text/markdown', buffer: Buffer.from('# Keys\n\nBy keyboard.') });
  await page.getByRole('row').filter({ hasText: /keys/i }).getByText('ready').waitFor();

  await show(page, filled.api.url, 'browse');
  await page.getByRole('checkbox', { name: /^Select: Ada Lovelace lived/ }).focus();
  await page.keyboard.press('Space');
  await page.getByText('1 memory selected').waitFor();

  await show(page, filled.api.url, 'graph?user_id=fay');
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
