import { expect, onTestFinished } from 'vitest';
import type { Page } from 'playwright-core';
import { openStore } from '../../src/engine/store/open-store.ts';
import { browserTest, openConsole, show, signIn, useBrowser } from '../support/console-browser.ts';
import { seedEdge, seedMemories } from '../support/seed-store.ts';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** The map of a user in the console. */

/** Notes the widest line that is drawn, in pixels of the screen. */
const WATCH_LINES = `(() => {
  const { stroke } = CanvasRenderingContext2D.prototype;
  window.widest = 0;
  CanvasRenderingContext2D.prototype.stroke = function (...path) {
    window.widest = Math.max(window.widest, this.lineWidth * this.getTransform().a);
    return stroke.apply(this, path);
  };
})()`;
/** Links of each memory to those before it. */
const LINKS = 8;

useBrowser();

/** Draws two fingers apart on the map. */
async function pinch(page: Page): Promise<void> {
  const box = (await page.locator('canvas').boundingBox())!;
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  const cdp = await page.context().newCDPSession(page);
  const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', apart: number) =>
    cdp.send('Input.dispatchTouchEvent', {
      type,
      touchPoints: apart === 0 ? [] : [-apart, apart].map((dx, id) => ({ x: x + dx, y, id })),
    });
  await touch('touchStart', 40);
  for (const apart of [60, 80, 100, 120]) await touch('touchMove', apart);
  await touch('touchEnd', 0);
}

browserTest(
  'lines of a map grow as one comes nearer, but those of a large one, which would take too long',
  async () => {
    const folder = tempFolder();
    const store = openStore(`${folder}/cairn.sqlite`, { role: 'worker', create: true });
    for (const [userId, number] of [
      ['small', 10],
      ['large', 300],
    ] as const) {
      const texts = Array.from({ length: number }, (_, at) => ({ content: `Memory number ${at}.`, userId }));
      const seeded = await seedMemories(store, texts, Date.now());
      store.write(() => {
        for (const [at, { memoryNo: src }] of seeded.entries())
          for (const { memoryNo: dst } of seeded.slice(Math.max(0, at - LINKS), at))
            seedEdge(store, { src, dst, weight: 1 });
      });
    }
    store.close();
    const api = await startApi({ folder });
    onTestFinished(() => api.stop());
    await using opened = await openConsole(api.url, 'ask');
    const { page } = opened;
    await signIn(page, ADMIN_KEY);
    await page.getByRole('heading', { name: 'Ask', exact: true }).waitFor();
    await page.addInitScript(WATCH_LINES);
    const widestOf = async (user: string) => {
      await page.goto('about:blank'); // The page of the other user has counted lines of its own.
      await show(page, api.url, `graph?user_id=${user}`);
      await page.locator('canvas[data-settled]').waitFor();
      await page.locator('canvas').focus();
      for (let press = 0; press < 4; press++) await page.keyboard.press('+');
      await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
      return Number(await page.evaluate('widest'));
    };
    expect(await widestOf('small')).toBeGreaterThan(2);
    const before = Number(await page.evaluate('widest'));
    await pinch(page);
    await expect.poll(async () => Number(await page.evaluate('widest'))).toBeGreaterThan(before * 1.5);
    expect(page.url()).toContain('graph');
    const widest = await widestOf('large');
    expect(widest).toBeGreaterThan(0);
    expect(widest).toBeLessThanOrEqual(1.001);
  },
);
