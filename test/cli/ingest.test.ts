import fs from 'node:fs';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

let api: TestApi;
const cairn = (args: readonly string[], url = api.url) =>
  runCairn(['ingest', ...args], { settings: { CAIRN_URL: url, CAIRN_API_KEY: ADMIN_KEY } });

beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), workers: true, settings: { OM_UPLOAD_MAX_MB: '1' } });
});
afterAll(() => api.stop());

function folderWith(files: Readonly<Record<string, string | Buffer>>): string {
  const folder = tempFolder();
  for (const [name, content] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    fs.writeFileSync(path.join(folder, name), content);
  }
  return folder;
}

async function documentsOf(user: string) {
  return (await (await api.engine.tenant('default')).listDocuments({ userIds: [user] }, { limit: 1_000, offset: 0 }))
    .items;
}

/** Stands before the server and counts what comes; `answer` may see to a request itself. */
async function startGate(answer: (request: http.IncomingMessage, response: http.ServerResponse) => boolean) {
  const seen: string[] = [];
  const gate = http.createServer((request, response) => {
    seen.push(`${request.method} ${request.url!.split('?')[0]}`);
    if (answer(request, response)) return;
    const { method, url, headers } = request;
    const forwarded = http.request(api.url + url!, { method: method!, headers }, (reply) => {
      response.writeHead(reply.statusCode!, reply.headers);
      reply.pipe(response);
    });
    request.pipe(forwarded.on('error', () => response.destroy()));
  });
  gate.listen(0, '127.0.0.1');
  await once(gate, 'listening');
  onTestFinished(() => {
    gate.closeAllConnections();
    gate.close();
  });
  return { url: `http://127.0.0.1:${(gate.address() as AddressInfo).port}`, seen };
}

describe('a folder', () => {
  const files = {
    'notes.md': '# Ferries\n\nThe ferry to the island leaves at nine.\n',
    'deep/er/plain.txt': 'Otters hold hands while they sleep.\n',
    'page.html': '<!doctype html><title>T</title><article><p>The lighthouse was built in 1890.</p></article>',
    'picture.png': Buffer.from([0x89, 0x50, 0x4e, 0x47]),
    '.hidden.md': 'not this one',
  };

  test('is handed in with what is said about it, and its words are found', async () => {
    const folder = folderWith(files);
    const { code, stdout, stderr } = await cairn([
      folder,
      '--user',
      'ann',
      '--session',
      's1',
      '--tag',
      'a',
      '--tag',
      'b,c',
      '--metadata',
      '{"n":1}',
    ]);
    expect(stdout).toMatch(
      /^skipped: 1 hidden, 1 unknown type\n3 documents \(\d+ B\) in \d+ s: 3 new, 0 replaced, 0 known already, 0 refused\n3 ready\n$/,
    );
    expect(stderr).toMatch(/^Sending 100% · 3 of 3 · \d+ B · .*\/s\n(Reading \d+% .*\n)*Reading 100% · 3 of 3\n$/m);
    expect(code).toBe(0);
    const documents = (await documentsOf('ann')).sort((a, b) => (a.externalId! < b.externalId! ? -1 : 1));
    expect(documents).toMatchObject(
      ['deep/er/plain.txt', 'notes.md', 'page.html'].map((name) => ({
        state: 'ready',
        externalId: `${folder}/${name}`,
        fileName: path.basename(name),
        sessionId: 's1',
        tags: ['a', 'b,c'],
        metadata: { n: 1 },
      })),
    );
    const { body } = await api.request('POST', '/memory/query', { body: { query: 'otters sleep', user_id: 'ann' } });
    expect(body.matches[0]!.content).toContain('Otters hold hands');
  });

  test('is not sent again, but for what changed', async () => {
    const folder = folderWith(files);
    const gate = await startGate(() => false);
    const uploads = () => gate.seen.filter((request) => request === 'POST /memory/ingest').length;
    await cairn([folder, '--user', 'ben'], gate.url);
    expect(uploads()).toBe(3);
    expect((await cairn([folder, '--user', 'ben'], gate.url)).stdout).toContain(': 0 new, 0 replaced, 3 known already');
    expect(uploads()).toBe(3);

    fs.writeFileSync(path.join(folder, 'notes.md'), '# Ferries\n\nThe ferry leaves at ten now.\n');
    const { code, stdout } = await cairn([folder, '--user', 'ben'], gate.url);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringContaining(': 0 new, 1 replaced, 2 known already, 0 refused\n3 ready') as string,
    });
    expect(uploads()).toBe(4);
    expect(await documentsOf('ben')).toHaveLength(3);
  });

  test('is sent again where something else is said about it', async () => {
    const folder = folderWith({ 'a.txt': 'The same words.' });
    await cairn([folder, '--user', 'eve']);
    expect((await cairn([folder, '--user', 'eve', '--tag', 'new'])).stdout).toContain('1 replaced');
    expect(await documentsOf('eve')).toMatchObject([{ tags: ['new'] }]);
  });

  test('of another user is another document', async () => {
    const folder = folderWith({ 'a.txt': 'One file, two readers.' });
    await cairn([folder, '--user', 'one']);
    expect((await cairn([folder, '--user', 'two'])).stdout).toContain('1 new');
    expect((await cairn([folder])).stdout).toContain('1 new');
  });
});

describe('a file is known by where it is', () => {
  test('so that two folders of the same name do not replace each other, and a run from elsewhere does not repeat them', async () => {
    const folder = folderWith({
      'a/docs/README.md': 'Words of the first.',
      'b/docs/README.md': 'Words of the second.',
    });
    const runIn = (name: string, target: string) =>
      runCairn(['ingest', target, '--user', 'gus'], {
        folder: path.join(folder, name),
        settings: { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY },
      });
    expect((await runIn('a', 'docs')).stdout).toContain('1 new');
    expect((await runIn('b', 'docs')).stdout).toContain('1 new');
    expect((await runIn('.', '.')).stdout).toContain(': 0 new, 0 replaced, 2 known already');
    expect((await documentsOf('gus')).map(({ externalId }) => externalId)).toEqual([
      `${folder}/b/docs/README.md`,
      `${folder}/a/docs/README.md`,
    ]);
  });

  test('and what has the same bytes is one document until they differ', async () => {
    const names = Array.from({ length: 6 }, (_, n) => `copy${n}.md`);
    const folder = folderWith(Object.fromEntries(names.map((name) => [name, 'The same words in each of them.'])));
    expect((await cairn([folder, '--user', 'hal'])).stdout).toContain(': 1 new, 0 replaced, 5 known already');
    expect(await documentsOf('hal')).toHaveLength(1);

    const sent = path.basename((await documentsOf('hal'))[0]!.externalId!);
    fs.writeFileSync(path.join(folder, sent), 'Other words now.');
    expect((await cairn([folder, '--user', 'hal'])).stdout).toContain(': 1 new, 1 replaced, 4 known already');
    fs.copyFileSync(path.join(folder, sent), path.join(folder, 'later.md'));
    expect((await cairn([folder, '--user', 'hal'])).stdout).toContain(': 0 new, 0 replaced, 7 known already');
    expect(await documentsOf('hal')).toHaveLength(2);
  });

  test('also where its path is too long for an external id', async () => {
    const folder = folderWith({ [`${'d'.repeat(140)}/${'f'.repeat(140)}.md`]: 'Deep down.' });
    expect((await cairn([folder, '--user', 'ida'])).stdout).toContain('1 new');
    expect((await cairn([folder, '--user', 'ida'])).stdout).toContain('1 known already');
    expect(await documentsOf('ida')).toMatchObject([
      { externalId: expect.stringMatching(/^path-sha256:[\da-f]{64}$/) as string },
    ]);
  });
});

describe('what goes wrong', () => {
  test('is told document by document, and spares the others', async () => {
    const folder = folderWith({
      'good.md': 'Good words in a good file.',
      'blank.txt': ' \n ',
      'broken.pdf': '%PDF-1.7\nthis is no PDF\n',
      'large.txt': 'word '.repeat(400_000),
      'picture.png': Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0]),
    });
    const names = fs.readdirSync(folder).map((name) => path.join(folder, name));
    const { code, stdout } = await cairn([...names, 'http://127.0.0.1/secret', '--user', 'cal']);
    expect(stdout).toContain('6 documents');
    expect(stdout).toContain('4 new, 0 replaced, 0 known already, 2 refused\n');
    expect(stdout).toMatch(/^(?=.*1 ready)(?=.*1 without text)(?=.*2 failed).*$/m);
    const rowOf = (name: string) => stdout.split('\n').find((line) => line.startsWith(name));
    expect(rowOf('document')).toMatch(/code +reason$/);
    expect(rowOf(`${folder}/broken.pdf`)).toMatch(/ {2}corrupt_document +\S/);
    expect(rowOf(`${folder}/large.txt`)).toMatch(/ {2}too_large +\S/);
    expect(rowOf(`${folder}/picture.png`)).toMatch(/ {2}unsupported +\S/);
    expect(rowOf('http://127.0.0.1/secret')).toMatch(/ {2}fetch_refused +\S.*public/);
    expect(rowOf(`${folder}/good.md`)).toBeUndefined();
    expect(code).toBe(1);
  });

  test('what is not there, and nothing at all, is one line', async () => {
    const folder = folderWith({ 'a.png': 'no' });
    const errorOf = async (target: string) => (await cairn([target])).stderr;
    expect(await errorOf(`${folder}/none.md`)).toMatch(/^cairn: no such file or folder: .*none\.md\n$/);
    expect(await errorOf(`${folder}/*.md`)).toMatch(/^cairn: nothing matches .*\*\.md\n$/);
    expect(await errorOf(folder)).toMatch(/^cairn: nothing to ingest: .*\n$/);
    expect(await errorOf('ftp://127.0.0.1/x')).toMatch(/^cairn: no such file or folder/);
  });

  test('a key that is wrong ends it at once', async () => {
    const folder = folderWith({ 'a.txt': 'a', 'b.txt': 'b' });
    const { code, stderr } = await cairn([folder, '--key', 'wrong-key-entirely']);
    expect(stderr).toMatch(/^cairn: .*--key.*\n$/);
    expect(code).toBe(1);
  });
});

describe('a server that is busy or breaks off', () => {
  const many = Object.fromEntries(
    Array.from({ length: 30 }, (_, n) => [`${n}.txt`, `File number ${n} has words of its own.`]),
  );

  test('is asked again when it says so', async () => {
    const refusals: number[] = [];
    const gate = await startGate((request, response) => {
      if (request.url !== '/memory/ingest' || refusals.length >= 3) return false;
      refusals.push(performance.now());
      request.resume().on('end', () => {
        const problem = { detail: 'too much waits to be read', code: 'unavailable', status: 503 };
        response.writeHead(refusals.length === 1 ? 429 : 503, { 'retry-after': '1' }).end(JSON.stringify(problem));
      });
      return true;
    });
    const { code, stdout } = await cairn([folderWith(many), '--user', 'dan', '--no-wait'], gate.url);
    expect(stdout).toMatch(/: 30 new, 0 replaced, 0 known already, 0 refused\nthey are read in the background/);
    expect(code).toBe(0);
    expect(refusals).toHaveLength(3);
  });

  describe('a disk that is full', () => {
    const startFullGate = (waiting: (asked: number) => number, refusals: number) => {
      let refused = 0;
      let asked = 0;
      return startGate((request, response) => {
        const isAsked = request.url!.startsWith('/documents?state=');
        if (isAsked) response.end(JSON.stringify({ items: [], total: waiting(asked++) }));
        if (isAsked || request.url !== '/memory/ingest' || ++refused > refusals) return isAsked;
        request.resume().on('end', () => {
          const problem = { detail: 'the disk is too full to take in documents', code: 'storage_full', status: 507 };
          response.writeHead(507).end(JSON.stringify(problem));
        });
        return true;
      });
    };

    test('is waited for while documents that are read may make room', async () => {
      const gate = await startFullGate(() => 3, 2);
      const folder = folderWith({ 'a.txt': 'Words.' });
      const { code, stdout } = await cairn([folder, '--user', 'lea', '--no-wait'], gate.url);
      expect(gate.seen.filter((request) => request === 'POST /memory/ingest')).toHaveLength(3);
      expect(stdout).toContain(': 1 new, 0 replaced, 0 known already, 0 refused\n');
      expect(code).toBe(0);
    });

    test('is told at once where none is, also after it was waited for', async () => {
      // Two states are asked for each time: the first answer says that one waits, all others that none does.
      const gate = await startFullGate((asked) => (asked === 0 ? 1 : 0), Infinity);
      const { code, stdout } = await cairn([folderWith({ 'a.txt': 'Words.' }), '--user', 'max', '--no-wait'], gate.url);
      expect(stdout).toMatch(/a\.txt {2}storage_full {2}the disk is too full/);
      expect(gate.seen.filter((request) => request === 'POST /memory/ingest')).toHaveLength(2);
      expect(code).toBe(1);
    });
  });

  test('is waited for with its reason in sight', async () => {
    let refusals = 0;
    const gate = await startGate((request, response) => {
      if (request.url !== '/memory/ingest' || ++refusals > 2) return false;
      request.resume().on('end', () => {
        const problem = { detail: 'too much waits to be read', code: 'unavailable', status: 503 };
        response.writeHead(503, { 'retry-after': '3' }).end(JSON.stringify(problem));
      });
      return true;
    });
    const { code, stderr } = await cairn([folderWith({ 'a.txt': 'Words.' }), '--user', 'gus', '--no-wait'], gate.url);
    expect(stderr).toContain(' · waiting: too much waits to be read\n');
    expect(code).toBe(0);
  });

  test('goes on where it was when it is run again', async () => {
    const folder = folderWith(many);
    let uploads = 0;
    const gate = await startGate((request, response) => {
      if (request.url === '/memory/ingest' && ++uploads > 12) response.destroy();
      return uploads > 12;
    });
    const broken = await cairn([folder, '--user', 'fay'], gate.url);
    expect(broken.stderr).toMatch(/^cairn: the connection broke off after \d+ of 30 documents: run the same command/m);
    expect(broken.code).toBe(1);
    const stored = (await documentsOf('fay')).length;
    expect(stored).toBeGreaterThan(0);
    const { code, stdout } = await cairn([folder, '--user', 'fay']);
    // What the server had taken when the connection broke off may be stored after `stored` was counted.
    const summary = /: (\d+) new, 0 replaced, (\d+) known already, 0 refused\n30 ready\n/.exec(stdout)!;
    const [isNew, isKnown] = [Number(summary[1]), Number(summary[2])];
    expect(isNew + isKnown).toBe(30);
    expect(isKnown).toBeGreaterThanOrEqual(stored);
    expect(isKnown).toBeLessThanOrEqual(12);
    expect(code).toBe(0);
    expect(await documentsOf('fay')).toHaveLength(30);
  });

  test('a refusal in the middle of a body is told, not taken for a broken connection', async () => {
    const folder = folderWith({ 'large.txt': Buffer.alloc(40_000_000, 'words ') });
    const { code, stdout } = await cairn([folder]);
    expect(stdout).toMatch(/large\.txt {2}too_large {2}\S/);
    expect(code).toBe(1);
  });

  test('a document that is deleted meanwhile is not waited for', async () => {
    const gate = await startGate((request, response) => {
      if (!request.url!.includes('ids=')) return false;
      response.end('{"items":[],"total":0}');
      return true;
    });
    const { code, stdout } = await cairn([folderWith({ 'a.txt': 'Short lived.' })], gate.url);
    expect(stdout).toMatch(/1 unfinished\n[^]*a\.txt {2}unfinished {2}deleted meanwhile/);
    expect(code).toBe(1);
  });
});

test('nothing that a file is called reaches the terminal as a command', async () => {
  const folder = folderWith({ 'escape\u001b[31m.pdf': '%PDF-1.7 no' });
  const { stdout } = await cairn([folder]);
  expect(stdout).toMatch(/escape \[31m\.pdf {2}corrupt_document {2}\S/);
});
