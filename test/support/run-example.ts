import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { ADMIN_KEY, startApi } from './start-api.ts';
import { tempFolder } from './temp-folder.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

/**
 * Tells whether the test of an example must be skipped, because the example's packages are not installed. CI installs
 * them and sets REQUIRE_EXAMPLES.
 */
export function isAbsent(example: string): boolean {
  const packages = path.join(ROOT, 'examples', example, 'node_modules');
  return !fs.existsSync(packages) && process.env['REQUIRE_EXAMPLES'] === undefined;
}

/** Runs an example against a server with workers, and returns the lines that it writes. */
export async function runExample(example: string, settings: Readonly<Record<string, string>> = {}): Promise<string[]> {
  await using api = await startApi({
    folder: tempFolder(),
    settings: { OM_ADD_WAIT_MS: '60000', ...settings },
    workers: true,
  });
  // The example imports the package by its name; the hook leads that to the sources, which are not built here.
  const hook = path.join(ROOT, 'test/support/self-reference.mjs');
  const { stdout } = await run(process.execPath, ['--import', hook, 'main.mjs'], {
    cwd: path.join(ROOT, 'examples', example),
    env: { ...process.env, CAIRN_URL: api.url, CAIRN_KEY: ADMIN_KEY },
  });
  return stdout.trim().split('\n');
}

/** Type-checks an example against its framework and the adapter. Rejects with the compiler's messages. */
export async function checkTypes(example: string): Promise<void> {
  const compiler = path.join(ROOT, 'node_modules/ts7/bin/tsc');
  const checked = run(process.execPath, [compiler, '-p', path.join(ROOT, 'examples', example)]);
  await checked.catch(({ stdout }: { readonly stdout: string }) => {
    throw new Error(stdout);
  });
}
