import fs from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { browserTest, openConsole, useBrowser } from '../support/console-browser.ts';
import { walkAsNewcomer } from '../support/newcomer.ts';
import { startServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** The first minutes with Cairn, as the guide tells them. */

const GUIDE = path.resolve(import.meta.dirname, '../../docs/guides/console.md');

useBrowser();

browserTest('the words of the empty page lead to the first explained answer', async () => {
  const service = await startServiceProcess({ folder: tempFolder() });
  onTestFinished(async () => void (await service.end('SIGKILL')));
  const url = await service.ready;
  await using opened = await openConsole(url);
  expect(await walkAsNewcomer(opened.page, url)).toMatch(/Words.*rank 1/);
  expect((await service.request('POST', '/memory/list', { body: {} })).body.items).toHaveLength(1);
});

browserTest('the guide names the buttons that the page has', () => {
  const guide = fs.readFileSync(GUIDE, 'utf8');
  for (const words of ['npm ci && npm start', 'Add a memory', 'Save', 'Ask']) expect(guide, words).toContain(words);
});
