import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Path of a Chromium; null if none is installed. Tests that need one are then skipped. */
    browserPath: string | null;
  }
}

const ROOT = path.resolve(import.meta.dirname, '../..');
const SOURCES = path.join(ROOT, 'src/console');
const PAGE = path.join(ROOT, 'dist/console/index.html');
/** Browsers by the names under which Debian and others install them. */
const BROWSERS = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/**
 * Finds a Chromium for the test run: `BROWSER_BIN`, or else one on the PATH. If there is none, it prints a note, or
 * fails if `REQUIRE_BROWSER=1`. It also builds the console if its sources are newer than the last build.
 */
export default function setup(project: TestProject): void {
  const found = process.env.BROWSER_BIN ?? BROWSERS.map(onPath).find((file) => file !== undefined);
  project.provide('browserPath', found ?? null);
  if (found === undefined) {
    if (process.env.REQUIRE_BROWSER === '1')
      throw new Error('REQUIRE_BROWSER=1, but there is no Chromium: install chromium-headless-shell');
    console.warn('no Chromium: tests of the console are skipped (install chromium-headless-shell, or set BROWSER_BIN)');
  }
  if (!isBuilt()) {
    const vite = path.join(ROOT, 'node_modules/vite/bin/vite.js');
    const config = path.join(SOURCES, 'vite.config.ts');
    const built = spawnSync(process.execPath, [vite, 'build', SOURCES, '--config', config], { encoding: 'utf8' });
    if (built.status !== 0) throw new Error(`the console cannot be built: ${built.stdout}${built.stderr}`);
  }
}

function onPath(name: string): string | undefined {
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  return folders.map((folder) => path.join(folder, name)).find((file) => fs.existsSync(file));
}

function isBuilt(): boolean {
  if (!fs.existsSync(PAGE)) return false;
  const builtAt = fs.statSync(PAGE).mtimeMs;
  const names = fs.readdirSync(SOURCES, { recursive: true, encoding: 'utf8' });
  return names.every((name) => fs.statSync(path.join(SOURCES, name)).mtimeMs < builtAt);
}
