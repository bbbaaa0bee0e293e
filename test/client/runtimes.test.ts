import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { bundleClient } from '../support/bundle-client.ts';
import { callEverything, EVERYTHING } from '../support/call-everything.ts';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/**
 * The client in other runtimes than the tests' own. They are installed apart (`npm ci --prefix test/runtimes`); CI does
 * so and sets REQUIRE_RUNTIMES.
 */

const PROGRAMS = path.resolve(import.meta.dirname, '../runtimes/node_modules/.bin');
const RUNTIMES = [
  { runtime: 'Node', program: process.execPath, options: [] },
  { runtime: 'Deno', program: path.join(PROGRAMS, 'deno'), options: ['run', '--no-prompt', '--allow-net=127.0.0.1'] },
  { runtime: 'Bun', program: path.join(PROGRAMS, 'bun'), options: ['run'] },
];

let client: string;
beforeAll(async () => void (client = await bundleClient('es')));

describe.each(RUNTIMES)('$runtime', ({ program, options }) => {
  const isAbsent = !fs.existsSync(program) && process.env.REQUIRE_RUNTIMES !== '1';

  test.skipIf(isAbsent)('uses all of the client', async () => {
    await using api = await startApi({ folder: tempFolder(), workers: true, settings: { OM_VEC_DIM: '256' } });
    const folder = tempFolder();
    fs.writeFileSync(path.join(folder, 'cairn.mjs'), client);
    fs.writeFileSync(
      path.join(folder, 'main.mjs'),
      `import * as cairn from './cairn.mjs';
       globalThis.cairn = cairn;
       const call = ${callEverything.toString()};
       console.log(JSON.stringify(await call(${JSON.stringify({ url: api.url, key: ADMIN_KEY })})));`,
    );
    const { stdout } = await promisify(execFile)(program, [...options, 'main.mjs'], { cwd: folder });
    expect(JSON.parse(stdout)).toEqual(EVERYTHING);
  });
});
