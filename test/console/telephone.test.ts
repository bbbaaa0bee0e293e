import { expect } from 'vitest';
import type { Locator, Page } from 'playwright-core';
import { browserTest, openConsole, show, signIn } from '../support/console-browser.ts';
import { useFilledConsole } from '../support/console-views.ts';
import { ADMIN_KEY } from '../support/start-api.ts';

/** The console on the screen of a telephone. */

const WIDTH = 390;
/** Least height of a label that can be read (px). */
const READABLE_PX = 11;

const filled = useFilledConsole();

async function open(view: string) {
  const opened = await openConsole(filled.api.url, view, { width: WIDTH });
  await signIn(opened.page, ADMIN_KEY);
  return opened;
}

/** Whether all of an element is between the left and the right edge of the screen. */
async function isInSight(element: Locator): Promise<boolean> {
  const { x, width } = (await element.boundingBox())!;
  return x >= 0 && x + width <= WIDTH;
}

browserTest('the navigation and the tabs show where one is, however many stand before it', async () => {
  await using opened = await open('work');
  const { page } = opened;
  const navigation = page.getByRole('navigation');
  await expect.poll(() => isInSight(navigation.getByRole('link', { name: 'Work and cost' }))).toBe(true);
  await show(page, filled.api.url, 'admin?tab=audit');
  await expect.poll(() => isInSight(navigation.getByRole('link', { name: 'Administration' }))).toBe(true);
  await expect.poll(() => isInSight(page.getByRole('tab', { name: 'Audit log' }))).toBe(true);
  await navigation.getByRole('link', { name: 'Ask' }).click();
  await expect.poll(() => isInSight(navigation.getByRole('link', { name: 'Ask' }))).toBe(true);
});

browserTest('labels of the map around a memory are large enough, and none stands on another', async () => {
  await using opened = await open(filled.views.find((view) => /^memory.*links/.test(view))!);
  const labels = opened.page.getByRole('group', { name: 'Memories and names around it' }).locator('text');
  await labels.first().waitFor();
  const boxes = await Promise.all((await labels.all()).map(async (label) => (await label.boundingBox())!));
  expect(boxes.length).toBeGreaterThan(1);
  for (const [at, a] of boxes.entries()) {
    expect(a.height).toBeGreaterThanOrEqual(READABLE_PX);
    for (const b of boxes.slice(at + 1)) {
      const isBeside = a.x + a.width <= b.x || b.x + b.width <= a.x;
      // The box of a line of text is somewhat higher than its letters.
      const isAbove = Math.abs(a.y - b.y) >= a.height * 0.8;
      expect(isBeside || isAbove, JSON.stringify([a, b])).toBe(true);
    }
  }
});

/** Colours of the columns of pixels at both edges of the canvas. */
const EDGES = `(() => {
  const canvas = document.querySelector('canvas');
  const column = (x) => canvas.getContext('2d').getImageData(x, 0, 1, canvas.height).data;
  return new Set([0, canvas.width - 1].flatMap((x) => [...new Uint32Array(column(x).buffer)])).size;
})()`;

browserTest('a graph fits onto the screen at first', async () => {
  const words = ['Anchors', 'Boats', 'Cranes', 'Docks', 'Engines', 'Ferries', 'Gangways', 'Hulls', 'Inlets', 'Jetties'];
  for (const word of [...words, ...words.map((word) => `Old ${word.toLowerCase()}`)])
    await filled.api.request('POST', '/memory/add?wait=60000', {
      body: { content: `${word} of the Porto harbour belong to ${word} & Sons.`, user_id: 'harbour' },
    });
  await using opened = await open('graph?user_id=harbour');
  const { page } = opened;
  await page.locator('canvas[data-settled]').waitFor();
  expect(await page.evaluate(EDGES)).toBe(1);
});

browserTest('columns of a table stay wide enough for their words', async () => {
  await using opened = await open('work');
  const chip = opened.page.getByRole('region', { name: 'Jobs' }).getByText('done', { exact: true }).first();
  await chip.waitFor();
  expect(await isCut(opened.page, '.chip')).toEqual([]);
  await show(opened.page, filled.api.url, 'documents');
  expect(await isCut(opened.page, '.chip')).toEqual([]);
});

/** The texts of elements that are not wholly to be seen. */
async function isCut(page: Page, selector: string): Promise<string[]> {
  const cut = `[...document.querySelectorAll('${selector}')]
    .filter((element) => element.scrollWidth > element.clientWidth).map(({ textContent }) => textContent)`;
  return page.evaluate<string[]>(cut);
}
