import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApi, type TestApi } from '../../support/start-api.ts';
import { tempFolder } from '../../support/temp-folder.ts';

/**
 * The conformance suite of the protocol and its inspector, which are programs of their own. They are installed apart
 * (`npm ci --prefix test/conformance-mcp --ignore-scripts`); CI does so and sets REQUIRE_CONFORMANCE.
 */

const ROOT = path.resolve(import.meta.dirname, '../../..');
const PROGRAMS = path.join(ROOT, 'test/conformance-mcp/node_modules/.bin');
const isAbsent = !fs.existsSync(path.join(PROGRAMS, 'conformance')) && process.env.REQUIRE_CONFORMANCE !== '1';
if (isAbsent) console.log('the conformance suite of MCP is not installed: its tests are skipped');

/**
 * The generic scenarios by revision. All others, which the suite lists too, call tools, resources and prompts of a
 * server that was made for the suite.
 */
const SCENARIOS = {
  '2026-07-28': [
    'server-stateless',
    'tools-list',
    'resources-list',
    'prompts-list',
    'caching',
    'dns-rebinding-protection',
    'sep-2164-resource-not-found',
    'http-header-validation',
    'server-sse-multiple-streams',
  ],
  '2025-11-25': [
    'server-initialize',
    'ping',
    'tools-list',
    'resources-list',
    'prompts-list',
    'dns-rebinding-protection',
  ],
};
/** Checks of `server-stateless` that need a tool of the suite. */
const NOT_TESTABLE = [
  'sep-2575-http-server-no-independent-requests-on-stream',
  'sep-2575-missing-capability-http-400',
  'sep-2575-server-no-log-without-loglevel',
  'sep-2575-server-rejects-undeclared-capability',
];

interface Check {
  readonly id: string;
  readonly status: string;
  readonly errorMessage?: string;
}

describe.skipIf(isAbsent)('the official suite', () => {
  let api: TestApi;
  beforeAll(async () => {
    // The suite sends no key.
    api = await startApi({ folder: tempFolder(), workers: true, settings: { OM_API_KEY: '', OM_VEC_DIM: '256' } });
  });
  afterAll(() => api.stop());

  /** Runs a program to its end, however it ends, and returns what it printed. */
  async function run(program: string, args: readonly string[]): Promise<string> {
    try {
      return (await promisify(execFile)(process.execPath, [path.join(PROGRAMS, program), ...args])).stdout;
    } catch (error) {
      return `${(error as { stdout?: string }).stdout ?? ''}${String(error)}`;
    }
  }

  /** Runs a scenario and returns its checks. */
  async function checksOf(scenario: string, revision: string): Promise<readonly Check[]> {
    const folder = tempFolder();
    const of = ['--scenario', scenario, '--spec-version', revision];
    const bounds = ['--timeout', '200000', '-o', folder];
    const printed = await run('conformance', ['server', '--url', `${api.url}/mcp`, ...of, ...bounds]);
    const [file] = fs.globSync(path.join(folder, '*/checks.json'));
    if (file === undefined) throw new Error(`${scenario} told no checks: ${printed}`);
    return JSON.parse(fs.readFileSync(file, 'utf8')) as Check[];
  }

  const runs = Object.entries(SCENARIOS).flatMap(([revision, scenarios]) =>
    scenarios.map((scenario) => [scenario, revision] as const),
  );
  test.each(runs)('scenario %s at %s', async (scenario, revision) => {
    const checks = await checksOf(scenario, revision);
    expect(checks.filter(({ status }) => status === 'SUCCESS').length).toBeGreaterThan(0);
    const failed = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING');
    const untested = failed.filter(({ errorMessage = '' }) => errorMessage.startsWith('Not testable'));
    expect(failed.filter((check) => !untested.includes(check))).toEqual([]);
    expect(untested.map(({ id }) => id).sort()).toEqual(scenario === 'server-stateless' ? NOT_TESTABLE : []);
  });

  test('the inspector lists and calls tools over HTTP', async () => {
    const over = ['--cli', `${api.url}/mcp`, '--transport', 'http'];
    const listed = await run('inspector', [...over, '--method', 'tools/list']);
    expect(listed).toContain('"name": "recall"');
    const content = 'content=The inspector was here.';
    const call = ['--method', 'tools/call', '--tool-name', 'remember', '--tool-arg', content];
    expect(await run('inspector', [...over, ...call])).toContain('Stored as memory');
  });

  test('the inspector calls a tool of cairn mcp', async () => {
    await api.add({ content: 'Said before the inspector asked.' });
    const bridge = [process.execPath, path.join(ROOT, 'bin/cairn.cjs'), 'mcp', '--url', api.url];
    const called = await run('inspector', ['--cli', ...bridge, '--method', 'tools/call', '--tool-name', 'list_recent']);
    expect(called).toContain('Said before the inspector asked.');
  });
});
