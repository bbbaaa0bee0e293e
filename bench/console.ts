/**
 * What the console costs: `npm run measure -- console [NODES] [ROWS]`. Builds it, starts the service on a folder of its
 * own and opens pages in a headless Chromium on this machine: bytes, first paint with an empty and a filled cache,
 * frames a second of the largest graph and of a long list. Prints one JSON line per figure.
 */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser } from './console/browser.ts';
import { fillStore } from './console/fill-store.ts';
import { measureFrames } from './console/frames.ts';
import { startServer } from './load.ts';
import { percentile, report } from './report.ts';

const NODES = Number(process.argv[2] ?? 2_000);
const ROWS = Number(process.argv[3] ?? 100_000);
/** Loads of the page for each figure of the first paint. */
const LOADS = 15;
const ROOT = path.resolve(import.meta.dirname, '..');
const BUILT = path.join(ROOT, 'dist/console');

await main();

async function main(): Promise<void> {
  build();
  reportBytes();
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
  const file = path.join(folder, 'cairn.sqlite');
  await fillStore(file, { nodes: NODES, rows: ROWS });
  const program = [path.join(ROOT, 'bin/cairn.cjs'), 'serve'];
  const service = await startServer(program, { OM_DB_PATH: file, OM_PORT: '0', OM_API_KEY: '' });
  const browser = await launchBrowser();
  try {
    await measureFirstPaint(browser, service.url);
    await measureGraph(browser, service.url);
    await measureList(browser, service.url);
  } finally {
    await browser.close();
    await service.stop();
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

function build(): void {
  const vite = path.join(ROOT, 'node_modules/vite/bin/vite.js');
  const args = [vite, 'build', 'src/console', '--config', 'src/console/vite.config.ts'];
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
  if (status !== 0) throw new Error(`the console cannot be built: ${stderr}`);
}

function reportBytes(): void {
  const sizeOf = (file: string) => gzipSync(fs.readFileSync(path.join(BUILT, file))).length;
  const page = fs.readFileSync(path.join(BUILT, 'index.html'), 'utf8');
  const first = [...page.matchAll(/"\.\/(console\/[^"]+)"/g)].map(([, file]) => file!);
  const all = fs.readdirSync(path.join(BUILT, 'console')).map((name) => `console/${name}`);
  const total = (files: readonly string[]) => ['index.html', ...files].reduce((sum, file) => sum + sizeOf(file), 0);
  report('console_bytes_gzip', total(all), { files: all.length, first_page: total(first) });
}

/**
 * Measures the time to the first paint of the page, without and with a cache. It is the time that the browser calls the
 * first contentful paint, from which something can be read.
 */
async function measureFirstPaint(browser: Browser, url: string): Promise<void> {
  const cold: Load[] = [];
  const warm: Load[] = [];
  for (let load = 0; load < LOADS; load++) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    const page = await context.newPage();
    cold.push(await loadPage(page, url));
    await page.goto('about:blank');
    warm.push(await loadPage(page, url));
    await context.close();
  }
  reportLoads('first_paint_cold_ms', cold, { first_of_all: cold[0]!.paint });
  reportLoads('first_paint_warm_ms', warm);
}

interface Load {
  readonly paint: number;
  readonly usable: number;
}

async function loadPage(page: Page, url: string): Promise<Load> {
  await page.goto(`${url}/console`, { waitUntil: 'commit' });
  await page.getByRole('searchbox', { name: 'Question' }).waitFor();
  return page.evaluate(`new Promise((resolve) => {
    const usable = performance.now();
    const tell = () => {
      const [paint] = performance.getEntriesByName('first-contentful-paint');
      if (paint === undefined) return setTimeout(tell, 10);
      resolve({ paint: paint.startTime, usable });
    };
    tell();
  })`);
}

function reportLoads(figure: string, loads: readonly Load[], more: Readonly<Record<string, number>> = {}): void {
  const paints = loads.map(({ paint }) => paint);
  const usable = loads.map((load) => load.usable);
  report(figure, percentile(paints, 0.5), {
    p95: percentile(paints, 0.95),
    usable: percentile(usable, 0.5),
    ...more,
  });
}

/** Measures frames while the layout of the graph settles, then while the map is moved, zoomed and led through time. */
async function measureGraph(browser: Browser, url: string): Promise<void> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(`${url}/console#/graph?user_id=map&limit=${NODES}`);
  await page.locator('canvas').waitFor();
  const figure = `graph_of_${NODES}`;
  await measureFrames(browser, page, { figure: `${figure}_settling`, step: '() => {}' });
  await page.locator('canvas[data-settled]').waitFor({ timeout: 120_000 });
  const canvas = 'document.querySelector("canvas")';
  await measureFrames(browser, page, {
    figure: `${figure}_moving`,
    step: `(frame) => ${canvas}.dispatchEvent(new KeyboardEvent('keydown', {
      key: frame % 40 < 20 ? 'ArrowLeft' : 'ArrowRight' }))`,
  });
  await measureFrames(browser, page, {
    figure: `${figure}_zooming`,
    step: `(frame) => ${canvas}.dispatchEvent(new WheelEvent('wheel', {
      deltaY: frame % 120 < 60 ? -12 : 12, cancelable: true }))`,
  });
  await measureFrames(browser, page, {
    figure: `${figure}_in_time`,
    step: `(frame) => {
      const slider = document.querySelector('input[type=range]');
      slider.value = Number(slider.min) + (slider.max - slider.min) * (frame % 100) / 100;
      slider.dispatchEvent(new Event('input', { bubbles: true }));
    }`,
  });
  await page.close();
}

/** Measures frames while a list that was loaded to its end is scrolled; a frame without rows in sight is blank. */
async function measureList(browser: Browser, url: string): Promise<void> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(`${url}/console#/browse?user_id=list`);
  const list = page.getByRole('list', { name: 'List of memories' });
  await list.getByRole('listitem').first().waitFor();
  for (let loaded = 0; loaded < ROWS;) {
    await page.evaluate('document.querySelector(".list").scrollTo(0, 1e9)');
    loaded = Number((await page.getByText(/memories loaded/).textContent())!.replaceAll(/\D/g, ''));
  }
  await page.evaluate('document.querySelector(".list").scrollTo(0, 0)');
  const inSight = `() => {
    const box = document.querySelector('.list').getBoundingClientRect();
    return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)?.closest('.list-item') === null;
  }`;
  for (const [name, pixels] of [
    ['scrolling', 60],
    ['flinging', 4_000],
  ] as const) {
    await measureFrames(browser, page, {
      figure: `list_of_${ROWS}_${name}`,
      step: `() => document.querySelector('.list').scrollBy(0, ${pixels})`,
      isBlank: inSight,
    });
  }
  await page.close();
}
