import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const EXAMPLE = path.join(ROOT, 'examples/langgraph');
const isInstalled = fs.existsSync(path.join(EXAMPLE, 'node_modules'));

// CI installs the packages of the example and sets REQUIRE_EXAMPLES.
test.skipIf(!isInstalled && process.env['REQUIRE_EXAMPLES'] === undefined)(
  'a graph, an agent and the clients of LangGraph and OpenMemory run against a server, unchanged',
  async () => {
    const settings = { OM_MODE: 'langgraph', OM_ADD_WAIT_MS: '20000' };
    await using api = await startApi({ folder: tempFolder(), settings, workers: true });
    // The example imports the package by its name; the hook leads that to the sources, which are not built here.
    const hook = path.join(ROOT, 'test/support/self-reference.mjs');
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', hook, 'main.mjs'], {
      cwd: EXAMPLE,
      env: { ...process.env, CAIRN_URL: api.url, CAIRN_KEY: ADMIN_KEY },
    });
    expect(stdout.trim().split('\n')).toEqual([
      'ok: graph with a store',
      'ok: retriever',
      'ok: chat history',
      'ok: agent with recall and capture',
      "ok: LangGraph's SDK",
      'ok: openmemory-js',
    ]);
  },
);
