import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { KINDS, parseOptions } from '../../bench/load-generator/options.ts';
import { createOutcomes } from '../../bench/load-generator/outcomes.ts';
import { createRequests } from '../../bench/load-generator/requests.ts';
import { runLoad } from '../../bench/load-generator/run-load.ts';
import { freePort } from '../support/free-port.ts';
import { startServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

const ENTRY = path.resolve(import.meta.dirname, '../../bench/load-generator/main.ts');
const KEY = 'a-key-for-the-load';

function startLoad(words: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, [ENTRY, ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

async function endOf(child: ChildProcess): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout!),
    text(child.stderr!),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  return { code, stdout, stderr };
}

/** Rows of the summary by their first cell: how many requests of a kind were answered. */
function countsOf(stdout: string): Record<string, number> {
  const rows = stdout.split('\n').map((line) => line.split(/ {2,}/));
  const counted = rows.filter(([kind]) => KINDS.includes(kind as never)).map(([kind, n]) => [kind, Number(n)] as const);
  return Object.fromEntries(counted) as Record<string, number>;
}

describe('npm run load', () => {
  test('sends all kinds to a service of its own, says how it went, and ends with 0', async () => {
    const mix = 'add:1,batch:1,query:1,document:1,read:1';
    const { code, stdout, stderr } = await endOf(
      startLoad(['--minutes', '0.1', '--rate', '40', '--mix', mix, '--tenants', '2']),
    );
    console.log(stdout);
    expect([code, stderr.includes('Load 100%')], stdout + stderr).toEqual([0, true]);
    expect(stdout).toContain('2 tenants of 20 users');
    for (const kind of KINDS) expect(countsOf(stdout)[kind], kind).toBeGreaterThan(0);
    expect(stdout).toContain('The store is gone again.');
  });

  test('fills the metrics of a server with all kinds of activity, and leaves what it added under names of its own', async () => {
    const service = await startServiceProcess({ folder: tempFolder(), settings: { OM_API_KEY: KEY } });
    onTestFinished(async () => void (await service.end('SIGTERM')));
    const url = await service.ready;
    const words = ['--url', url, '--key', KEY, '--minutes', '0.1', '--users', '3', '--rate', '50'];
    const { code, stdout } = await endOf(startLoad([...words, '--mix', 'add:4,batch:2,query:4,document:2,read:2']));
    expect(code, stdout).toBe(0);
    const headers = { 'x-api-key': KEY };
    await service.idle(headers);
    const metrics = (await service.request('GET', '/metrics', { headers })).text;
    for (const activity of [
      /^cairn_http_request_duration_seconds_count\{kind="(add|query|documents|read)"\} [1-9]/gm,
      /^cairn_adds_total\{outcome="accepted"\} [1-9]/gm,
      /^cairn_queries_total\{profile="\w+"\} [1-9]/gm,
      /^cairn_memory_ready_seconds_count\{stage="linked",priority="(interactive|bulk)"\} [1-9]/gm,
      /^cairn_documents_total\{format="(html|markdown)",outcome="shown"\} [1-9]/gm,
    ]) {
      expect(metrics.match(activity) ?? [], String(activity)).not.toEqual([]);
    }
    expect(metrics.match(/^cairn_http_request_duration_seconds_count/gm)).toHaveLength(4);
    const left = (await service.request('GET', '/users/load-0/memories', { headers })).body.items;
    expect(left.length).toBeGreaterThan(0);
    const removed = await service.request('DELETE', '/users/load-0/memories', { headers });
    expect(removed.status).toBe(200);
    expect((await service.request('GET', '/users/load-0/memories', { headers })).body.items).toEqual([]);
  });

  test('Ctrl-C ends it with the summary, and the service that it started with it', async () => {
    const child = startLoad(['--minutes', '10', '--rate', '20']);
    const [first] = (await once(child.stdout!, 'data')) as [Buffer];
    const [url] = /http:\/\/[\d.:]+\d/.exec(first.toString())!;
    await pause(5_000); // A hundred requests fall into this time.
    child.kill('SIGINT');
    const { code, stdout } = await endOf(child);
    expect(code, stdout).toBe(0);
    expect(stdout).toMatch(/answers: 20\d × \d/);
    await expect(fetch(`${url}/health`)).rejects.toThrow();
  });

  test('a server that refuses or is not there is a failure', async () => {
    const service = await startServiceProcess({ folder: tempFolder(), settings: { OM_API_KEY: KEY } });
    onTestFinished(async () => void (await service.end('SIGTERM')));
    const refused = await endOf(startLoad(['--url', await service.ready, '--key', 'a-wrong-key', '--minutes', '0.01']));
    expect(refused.code).toBe(1);
    expect(refused.stdout).toMatch(/answers: .*(401|429) × \d/);
    const absent = await endOf(startLoad(['--url', `http://127.0.0.1:${await freePort()}`, '--minutes', '0.01']));
    expect(absent.code).toBe(1);
    expect(absent.stdout).toMatch(/answers: ECONNREFUSED × \d/);
  });

  test('options that cannot be meant end it with 2 and what is allowed', async () => {
    const { code, stderr } = await endOf(startLoad(['--mix', 'nothing:1']));
    expect([code, stderr]).toEqual([2, expect.stringContaining('expected shares such as query:9,add:1')]);
  });
});

describe('options', () => {
  test('without any are a minute on a service of its own', () => {
    const { url, keys, tenants, durationMs, rate } = parseOptions([], { CAIRN_API_KEY: 'a-key' });
    expect([url, keys, tenants, durationMs, rate]).toEqual([undefined, ['a-key'], 3, 60_000, undefined]);
  });

  test('--key may be repeated, one a tenant, and goes before the environment', () => {
    const words = ['--url', 'http://127.0.0.1:1', '--key', 'one', '--key', 'two', '--minutes', '0.5', '--rate', '2.5'];
    expect(parseOptions(words, { CAIRN_API_KEY: 'three' })).toMatchObject({
      keys: ['one', 'two'],
      durationMs: 30_000,
      rate: 2.5,
    });
  });

  test.each([['--mix=add:0'], ['--rate=0'], ['--tenants=1.5'], ['--connections=0'], ['--key=a-key'], ['--no-such']])(
    '%s is refused',
    (word) => {
      const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
      onTestFinished(() => said.mockRestore());
      expect(() => parseOptions([word], {})).toThrow(/expected|sends nothing|goes with|unknown option/);
    },
  );
});

describe('what is sent', () => {
  const options = { ...parseOptions([], {}), keys: ['one', 'two'] };

  test('is the same for the same seed, and for all tenants and users', () => {
    const [next, again] = [createRequests(options), createRequests(options)];
    const sent = Array.from({ length: 500 }, next);
    expect(Array.from({ length: 500 }, again)).toEqual(sent);
    expect(new Set(sent.map(({ key }) => key))).toEqual(new Set(options.keys));
    expect(new Set(sent.map(({ kind }) => kind))).toEqual(new Set(KINDS));
    const other = Array.from({ length: 500 }, createRequests({ ...options, seed: 2 }));
    expect(other).not.toEqual(sent);
  });
});

describe('what is measured', () => {
  test('percentiles are exact to three figures', () => {
    const outcomes = createOutcomes();
    for (let ms = 1; ms <= 1_000; ms += 1) outcomes.record('query', 200, ms);
    expect(Math.abs(outcomes.queryP95Ms - 950)).toBeLessThan(1);
    const [, row] = outcomes.summary(10);
    expect(row!.split(/ {2,}/)).toEqual(['query', '1,000', '100.0', '0', '0', '500 ms', '950 ms', '990 ms', '1000 ms']);
  });

  test('an answer that puts a request off is no failure, any other that is none is', () => {
    const outcomes = createOutcomes();
    for (const outcome of [200, 202, 429, 503]) outcomes.record('add', outcome, 1);
    expect(outcomes.failed).toBe(0);
    for (const outcome of [302, 400, 401, 500, 507, 'ECONNRESET']) outcomes.record('add', outcome, 1);
    expect([outcomes.failed, outcomes.answered]).toEqual([6, 10]);
  });

  const options = { ...parseOptions(['--mix', 'query:1', '--connections', '1', '--rate', '100'], {}), keys: [''] };
  const untilTheEnd = { signal: new AbortController().signal, onProgress() {} };

  test('a stall is charged with all that was due meanwhile', async () => {
    const { url, requests } = await startStallingServer(500);
    const { outcomes } = await runLoad(url, { ...options, durationMs: 1_000 }, untilTheEnd);
    expect([outcomes.failed, outcomes.answered]).toEqual([0, requests()]);
    // One request of a hundred waited for its answer and some fifty for their turn: seen from the first alone the p95
    // would be nothing.
    expect(outcomes.queryP95Ms).toBeGreaterThan(100);
  });

  test('what was due and never sent is told', async () => {
    const { url, requests } = await startStallingServer(1_000);
    const { outcomes, ms } = await runLoad(url, { ...options, durationMs: 500 }, untilTheEnd);
    expect(requests()).toBe(1);
    expect(outcomes.summary(ms / 1000).at(-1)).toMatch(/^49 more were due and not sent/);
  });
});

/** Answers nothing for so long after its first request, then at once. */
async function startStallingServer(stallMs: number): Promise<{ url: string; requests: () => number }> {
  let count = 0;
  let stall: Promise<void> | undefined;
  const server = http.createServer((request, reply) => {
    count += 1;
    stall ??= pause(stallMs, undefined, { ref: false });
    request.resume();
    void stall.then(() => reply.end('{}'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests: () => count };
}
