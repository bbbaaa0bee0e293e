import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startFakeProvider } from '../support/fake-provider.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

const UUID = /[0-9a-f]{8}-[0-9a-f-]{27}/;
let api: TestApi;
const folder = tempFolder();
const cairn = (args: string[], input?: string) =>
  runCairn(args, {
    settings: { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY },
    ...(input === undefined ? {} : { input }),
  });

beforeAll(async () => {
  api = await startApi({ folder, workers: true });
});
afterAll(() => api.stop());

function write(name: string, lines: readonly (object | string)[]): string {
  const file = path.join(folder, name);
  fs.writeFileSync(file, lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''));
  return file;
}

test('a key of several tenants acts in the one that CAIRN_TENANT names, over each kind of request', async () => {
  const { control } = api.engine;
  for (const name of ['north', 'south']) control.createTenant(name);
  const { secret } = control.createKey({ tenantId: 'north', furtherTenantIds: ['south'], role: 'admin' });
  const inTenant = (args: string[], tenant: string, input?: string) =>
    runCairn(args, {
      settings: { CAIRN_URL: api.url, CAIRN_API_KEY: secret, CAIRN_TENANT: tenant },
      ...(input === undefined ? {} : { input }),
    });
  expect((await inTenant(['add', 'The pier is long.'], 'south')).code).toBe(0);
  const line = JSON.stringify({ content: 'The pier has a lamp.' });
  expect((await inTenant(['import', '-'], 'south', line)).code).toBe(0);
  const stored = async (name: string) => {
    const tenant = await api.engine.tenant(name);
    return (await tenant.listMemories({}, { limit: 10, offset: 0 })).map(({ content }) => content).sort();
  };
  expect([await stored('north'), await stored('south')]).toEqual([[], ['The pier has a lamp.', 'The pier is long.']]);
  expect(await inTenant(['list'], 'west')).toMatchObject({ code: 1, stdout: '' });
});

describe('add', () => {
  test('stores what it is given, with all that is said about it', async () => {
    const { code, stdout } = await cairn([
      'add',
      'The ferry',
      'leaves at nine',
      '--user',
      'ann',
      '--session',
      's1',
      '--tag',
      'a',
      '--tag',
      'b,c',
      '--title',
      'Trip',
      '--metadata',
      '{"n":1}',
      '--wait',
    ]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/ {2}ready, \w+/) as string });
    const memory = await (await api.engine.tenant('default')).getMemory(UUID.exec(stdout)![0]);
    expect(memory).toMatchObject({
      content: 'The ferry leaves at nine',
      userId: 'ann',
      sessionId: 's1',
      tags: ['a', 'b,c'],
      title: 'Trip',
      metadata: { n: 1 },
    });
  });

  test('reads - from standard input, and says what was known already', async () => {
    expect((await cairn(['add', '-'], 'two\nlines\n')).stdout).toMatch(/ {2}stored\n$/);
    const again = await cairn(['add', '-'], 'two\nlines');
    expect(again.stdout).toMatch(/ {2}known already/);
    expect((await (await api.engine.tenant('default')).getMemory(UUID.exec(again.stdout)![0])).content).toBe(
      'two\nlines',
    );
  });

  test('an empty text and metadata that is no object are refused', async () => {
    expect(await cairn(['add', '-'], '')).toMatchObject({
      code: 1,
      stderr: 'cairn: nothing to add: the text is empty\n',
    });
    expect(await cairn(['add', 'x', '--metadata', '[1]'])).toMatchObject({ code: 2 });
  });

  test('what the server refuses is one line', async () => {
    const { code, stderr } = await cairn(['add', 'x', '--tag', '']);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^cairn: tags.*must not be empty\n$/) as string,
    });
  });
});

describe('query', () => {
  beforeAll(async () => {
    await api.add({
      content: `${'Long before it. '.repeat(40)}Quartz glows violet under the lamp. ${'Long after it. '.repeat(40)}`,
      user_id: 'bob',
    });
    await api.add({
      content: 'Escape \u001b[31mred\u001b[0m and \u202ereversed quartzite',
      title: 'A title',
      user_id: 'eve',
    });
  });

  test('prints hits with score, sector, age and the part of the text that answers', async () => {
    const { code, stdout } = await cairn(['query', 'quartz violet lamp', '--user', 'bob', '-k', '1']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ 1 {2}[01]\.\d\d {2}\w+ · .*· bob\n {4}… Quartz glows violet under the lamp\./);
    expect(stdout.split('\n').every((line) => line.length <= 80)).toBe(true);
  });

  test('--explain says why each came', async () => {
    const { stdout } = await cairn(['query', 'quartz lamp', '--user', 'bob', '--explain']);
    expect(stdout).toMatch(/words +rank 1, matched: quartz, lamp/);
    expect(stdout).toMatch(/link +none led here/);
    const values = /value +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)/.exec(stdout)!.slice(1).map(Number);
    const sum = Number(/sum ([\d.]+)/.exec(stdout)![1]);
    expect(0.7 * values[0]! + 0.1 * values[1]! + 0.1 * values[2]! + 0.1 * values[3]!).toBeCloseTo(sum, 1);
  });

  test('--json is the reply as it came', async () => {
    const { stdout } = await cairn(['query', 'quartz', '--user', 'bob', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ query: 'quartz', degraded: false, matches: [{ user_id: 'bob' }] });
  });

  test('nothing in a memory reaches the terminal as a command', async () => {
    const { stdout } = await cairn(['query', 'quartzite', '--user', 'eve']);
    expect(stdout).toContain('Escape [31mred [0m and reversed quartzite');
    expect(stdout).toContain('A title');
  });

  test('no hit is no error; a wrong count is one of usage', async () => {
    expect(await cairn(['query', 'quartz', '--user', 'nobody'])).toEqual({
      code: 0,
      stdout: 'No memory matches.\n',
      stderr: '',
    });
    expect(await cairn(['query', 'quartz', '-k', '0'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('1..200') as string,
    });
  });
});

describe('import', () => {
  test('stores every line, and on a second run recognises every one', async () => {
    const file = write(
      'good.ndjson',
      Array.from({ length: 300 }, (_, n) => ({ content: `line number ${n}`, user_id: 'import' })),
    );
    expect(await cairn(['import', file])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^300 accepted, 0 known already, 0 rejected in /) as string,
      stderr: expect.stringMatching(/Importing 100% · [\d.]+ kB · 300 items · [\d,]+\/s\n$/) as string,
    });
    expect((await cairn(['import', file])).stdout).toMatch(/^0 accepted, 300 known already, 0 rejected/);
    expect(
      await (await api.engine.tenant('default')).listMemories({ userIds: ['import'] }, { limit: 1000, offset: 0 }),
    ).toHaveLength(300);
  });

  test('a byte order mark is no part of the first line', async () => {
    const { code, stdout } = await cairn(
      ['import', '-'],
      '\ufeff{"content":"from Windows"}\r\n{"content":"and on"}\r\n',
    );
    expect(stdout).toMatch(/^2 accepted, 0 known already, 0 rejected/);
    expect(code).toBe(0);
  });

  test('reads standard input; rejected lines are named with their number and reason, and the exit code tells', async () => {
    const lines = ['{"content":"stays"}', '', '{"content":""}', 'no json', '{"content":"stays too"}'];
    const { code, stdout } = await cairn(['import', '-'], lines.join('\n'));
    expect(code).toBe(1);
    expect(stdout).toMatch(/^2 accepted, 0 known already, 2 rejected/);
    expect(stdout).toMatch(/^line 3: .*must not be empty$/m);
    expect(stdout).toMatch(/^line 4: .*JSON$/m);
  });

  test('a body larger than what sockets hold goes through while its replies come in', async () => {
    const content = 'word '.repeat(2_000);
    const file = write(
      'large.ndjson',
      Array.from({ length: 1_500 }, (_, n) => ({ content: `${n} ${content}`, user_id: 'large' })),
    );
    expect((await cairn(['import', file])).stdout).toMatch(/^1,500 accepted/);
  });

  test('a file that is missing, a folder and a server that refuses are one line each', async () => {
    const one = async (args: string[]) => (await cairn(args)).stderr.replace(/^Importing.*\n/, '');
    expect(await one(['import', path.join(folder, 'none.ndjson')])).toMatch(
      /^cairn: no such file or folder: .*none\.ndjson\n$/,
    );
    expect(await one(['import', folder])).toMatch(/^cairn: .* has no known format: name it, .*\n$/);
    expect(await one(['import', write('x.ndjson', [{ content: 'x' }]), '--key', 'wrong-key-entirely'])).toMatch(
      /^cairn: .*not known.*--key.*\n$/,
    );
  });

  test('an owner for lines, which name their own, is refused before anything is stored', async () => {
    const file = write('owner.ndjson', [{ content: 'owned by nobody', user_id: 'owner' }]);
    for (const target of [[file], ['lines', file], ['openmemory', file]])
      expect(await cairn(['import', ...target, '--user', 'else'])).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/--user: not for .*; nothing was stored/) as string,
      });
    expect((await cairn(['list', '--user', 'owner'])).stdout).toBe('');
  });

  test('a connection that breaks off says how far it came and what to do', async () => {
    const server = http.createServer((request, response) => {
      // Once all was sent: closed with bytes that nobody has read, a connection is reset, and takes the line along.
      request
        .resume()
        .once('end', () =>
          response.write('{"line":1,"id":"x","state":"queued"}\n', () => setImmediate(() => response.destroy())),
        );
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { code, stderr } = await cairn(['import', '-', '--url', url], '{"content":"a"}\n{"content":"b"}\n');
    expect(code).toBe(1);
    expect(stderr).toMatch(/^cairn: the connection broke off after 1 lines: run the same command again/m);
  });
});

describe('stats and jobs', () => {
  test('stats counts memories by sector and jobs by state', async () => {
    const { code, stdout } = await cairn(['stats']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^memories +[\d,]+/m);
    expect(stdout).toMatch(/^jobs .*done/m);
    expect(stdout).toMatch(/^embedder .*768 dimensions$/m);
    for (const { sector, count } of await (await api.engine.tenant('default')).sectorStats()) {
      expect(stdout).toMatch(new RegExp(`^${sector} +${count.toLocaleString('en-US')} `, 'm'));
    }
  });

  test('a dead letter is listed with its reason, and is retried, cancelled and discarded', async () => {
    const provider = await startFakeProvider({ dimensions: 256 });
    onTestFinished(() => provider.close());
    provider.setMode('refuse_text', { marker: 'poison' });
    const settings = { OM_EMBEDDINGS: 'openai', OM_OPENAI_BASE_URL: provider.url, OM_VEC_DIM: '256' };
    await using own = await startApi({ folder: tempFolder(), workers: true, settings });
    const there = (args: string[]) => runCairn(args, { settings: { CAIRN_URL: own.url, OM_API_KEY: ADMIN_KEY } });

    const { job_id: id, token } = await own.add({ content: 'poison for the model' });
    await (await own.engine.tenant('default')).waitFor(token, 120_000);
    expect((await there(['jobs'])).stdout).toMatch(/^1 dead letter: cairn jobs --state dead /m);
    const dead = await there(['jobs', '--state', 'dead']);
    expect(dead.stdout).toMatch(new RegExp(`^dead 1\\n\\njob .*\\n${id}  dead  .*\\n  invalid: `));

    expect((await there(['jobs', 'retry', id])).stdout).toBe(`${id}  queued again at encode\n`);
    await (await own.engine.tenant('default')).waitFor(token, 120_000);
    expect((await there(['jobs', 'discard', id])).stdout).toBe(`${id}  discarded\n`);
    expect((await there(['jobs'])).stdout).toBe('No jobs.\n');
    const gone = await there(['jobs', 'retry', id]);
    expect({ code: gone.code, lines: gone.stderr.split('\n').length }).toEqual({ code: 1, lines: 2 });
  });

  test('all dead letters are retried at once; those that cannot be are counted and stay', async () => {
    const provider = await startFakeProvider({ dimensions: 256 });
    onTestFinished(() => provider.close());
    provider.setMode('refuse_text', { marker: 'poison' });
    const settings = { OM_EMBEDDINGS: 'openai', OM_OPENAI_BASE_URL: provider.url, OM_VEC_DIM: '256' };
    await using own = await startApi({ folder: tempFolder(), workers: true, settings });
    const tenant = await own.engine.tenant('default');
    const there = (args: string[]) => runCairn(args, { settings: { CAIRN_URL: own.url, OM_API_KEY: ADMIN_KEY } });
    const added = [];
    for (let i = 0; i < 10; i++) added.push(await own.add({ content: `poison for the model, number ${i}` }));
    for (const { token } of added) await tenant.waitFor(token, 120_000);
    expect(await tenant.countJobs()).toMatchObject({ dead: 10 });

    provider.setMode('ok');
    await tenant.deleteMemory(added[0]!.id);
    expect((await there(['jobs', 'retry', '--state', 'dead'])).stdout).toBe('9 jobs started again, 1 cannot be\n');
    for (const { token } of added.slice(1)) await tenant.waitFor(token, 120_000);
    expect(await tenant.countJobs()).toMatchObject({ dead: 1, done: 9 });
    for (const args of [[], [added[1]!.job_id, '--state', 'dead'], ['--state', 'done']]) {
      expect(await there(['jobs', 'retry', ...args])).toMatchObject({ code: 2, stdout: '' });
    }
  });

  test('jobs that are discarded while all are retried are counted, and the others are started again', async () => {
    const provider = await startFakeProvider({ dimensions: 256 });
    onTestFinished(() => provider.close());
    provider.setMode('refuse_text', { marker: 'poison' });
    const settings = { OM_EMBEDDINGS: 'openai', OM_OPENAI_BASE_URL: provider.url, OM_VEC_DIM: '256' };
    await using own = await startApi({ folder: tempFolder(), workers: true, settings });
    const tenant = await own.engine.tenant('default');
    const added = [];
    for (let i = 0; i < 10; i++) added.push(await own.add({ content: `poison for the model, number ${i}` }));
    for (const { token } of added) await tenant.waitFor(token, 120_000);
    // Between the command and the server, the first job is discarded before it is asked for.
    const discarded = String(added[0]!.job_id);
    const between = http.createServer((request, response) => {
      const isRetried = request.url!.startsWith(`/jobs/${discarded}/retry`);
      void (isRetried ? own.request('DELETE', `/jobs/${discarded}`) : Promise.resolve()).then(() => {
        const { method = 'GET', url, headers } = request;
        const on = http.request(`${own.url}${url}`, { method, headers }, (reply) => {
          response.writeHead(reply.statusCode!, reply.headers);
          reply.pipe(response);
        });
        request.pipe(on);
      });
    });
    await once(between.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void between.close());
    const url = `http://127.0.0.1:${(between.address() as AddressInfo).port}`;
    const retried = await runCairn(['jobs', 'retry', '--state', 'dead'], {
      settings: { CAIRN_URL: url, OM_API_KEY: ADMIN_KEY },
    });
    expect(retried).toEqual({ code: 0, stdout: '9 jobs started again, 1 cannot be\n', stderr: '' });
  });

  test('an unfinished job is listed, with how long its step has been owed, and cancelled', async () => {
    await using idle = await startApi({ folder: tempFolder() });
    const { job_id: id } = await idle.add({ content: 'nobody works here' });
    const listed = await runCairn(['jobs', '--url', idle.url, '--key', ADMIN_KEY]);
    expect(listed.stdout).toMatch(/^queued 1\n\nstep +queued +active +failed +oldest\nencode +1 +0 +0 +\d+ s\n\njob /);
    const { stdout } = await runCairn(['jobs', 'cancel', id, '--url', idle.url, '--key', ADMIN_KEY]);
    expect(stdout).toMatch(`${id}  cancelled`);
    expect((await (await idle.engine.tenant('default')).getJob(id)).state).toBe('cancelled');
  });
});
