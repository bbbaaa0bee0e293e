/** Chromium for measurements of the console, with the CPU time of its processes. */
import fs from 'node:fs';
import path from 'node:path';
import { type Browser, chromium } from 'playwright-core';

/** Browsers by the names under which Debian and others install them. */
const BROWSERS = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** Starts the browser `BROWSER_BIN`, or else the first Chromium on the PATH. @throws Error if there is none */
export async function launchBrowser(): Promise<Browser> {
  const folders = (process.env['PATH'] ?? '').split(path.delimiter);
  const installed = BROWSERS.flatMap((name) => folders.map((folder) => path.join(folder, name)));
  const executablePath = process.env['BROWSER_BIN'] ?? installed.find((file) => fs.existsSync(file));
  if (executablePath === undefined)
    throw new Error('there is no Chromium: install chromium-headless-shell, or set BROWSER_BIN');
  return chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-background-networking'],
  });
}

/** CPU time of all processes of a browser so far (ms): pages, drawing and the rest. */
export async function cpuMs(browser: Browser): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  return processInfo.reduce((sum, { cpuTime }) => sum + cpuTime * 1000, 0);
}
