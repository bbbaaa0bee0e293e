import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { receiveForm, receiveJson } from '../../src/api/receive-upload.ts';
import type { Tenant } from '../../src/engine/engine.ts';
import type { EngineError } from '../../src/engine/errors.ts';
import type { Upload } from '../../src/engine/types.ts';
import { BOUNDARY, FORM_TYPE, multipart, type Part } from '../support/multipart.ts';
import { fillDisk, mountSmallDisk, unmount } from '../support/small-disk.ts';
import { ADMIN_KEY, startApi, type Reply, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { fileTest } from '../support/store-settings.ts';

/** Without workers: what was accepted waits in the uploads folder. */
const folder = tempFolder();
const MB = 1024 * 1024;
let api: TestApi;
beforeAll(async () => {
  api = await startApi({ folder, settings: { OM_EMBEDDINGS: 'none', OM_UPLOAD_MAX_MB: '1' } });
});
afterAll(() => api.stop());
afterEach(async () => {
  expect((await api.request('GET', '/health')).status).toBe(200);
});

const uploadsFolder = path.join(folder, 'cairn.uploads');
const listUploads = () => (fs.existsSync(uploadsFolder) ? fs.readdirSync(uploadsFolder).sort() : []);

function sendForm(body: Uint8Array, headers: Record<string, string> = {}): Promise<Reply> {
  return api.request('POST', '/memory/ingest', { body, headers: { 'content-type': FORM_TYPE, ...headers } });
}
const sendParts = (...parts: Part[]) => sendForm(multipart(parts));
const sendJson = (body: object) => api.request('POST', '/memory/ingest', { body });

let serial = 0;
/** A text of its own each time, so that nothing is known already. */
const freshText = () => `Text number ${serial++} of these tests.`;
const file = (fields: Part = {}): Part => ({ name: 'file', fileName: 'notes.txt', content: freshText(), ...fields });
const field = (name: string, content: string): Part => ({ name, content });
const letters = (count: number) => 'x'.repeat(count);

/** The document that was accepted, as it is listed. */
async function accepted(reply: Reply): Promise<Record<string, unknown>> {
  expect(reply.status, reply.text).toBe(202);
  const { document_id: id } = reply.body;
  expect(reply.headers.get('location')).toBe(`/documents/${id as string}`);
  return (await api.request('GET', `/documents/${id as string}`)).body;
}

/** One error shape, and nothing of the file is left. */
async function expectRefused(send: () => Promise<Reply>, status: number, detail: RegExp): Promise<void> {
  const before = listUploads();
  const reply = await send();
  expect([reply.status, reply.body.detail], reply.text).toEqual([status, expect.stringMatching(detail)]);
  expect(reply.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
  expect(listUploads()).toEqual(before);
}

describe('a form', () => {
  fileTest('brings its file to disk, wherever it stands among the fields', async () => {
    const content = freshText();
    const document = await accepted(
      await sendParts(
        field('user_id', 'ana'),
        field('tags', 'one'),
        file({ content }),
        field('tags', 'two'),
        field('metadata', '{"a":{"b":[1]}}'),
        field('event_time', '1700000000000'),
        field('expires_at', '2999-01-01'),
        field('external_id', ''),
        field('title', 'Überschrift 你'),
      ),
    );
    expect(document).toMatchObject({
      state: 'queued',
      source: 'upload',
      user_id: 'ana',
      external_id: null,
      file_name: 'notes.txt',
      title: 'Überschrift 你',
      tags: ['one', 'two'],
      metadata: { a: { b: [1] } },
      event_time: 1_700_000_000_000,
      expires_at: Date.UTC(2999, 0, 1),
      bytes: content.length,
    });
    const stored = listUploads().map((name) => fs.readFileSync(path.join(uploadsFolder, name), 'utf8'));
    expect(stored).toContain(content);
  });

  test('of a real client, with a list as JSON', async () => {
    const form = new FormData();
    form.append('tags', '["a","b"]');
    form.append('file', new Blob([freshText()], { type: 'text/plain' }), 'naïve 名.txt');
    const response = await fetch(`${api.url}/memory/ingest`, {
      method: 'POST',
      body: form,
      headers: { authorization: `Bearer ${ADMIN_KEY}` },
    });
    const { document_id: id } = (await response.json()) as { document_id: string };
    const document = (await api.request('GET', `/documents/${id}`)).body;
    expect(document).toMatchObject({ file_name: 'naïve 名.txt', tags: ['a', 'b'] });
  });

  test('whose part names no type is known by its bytes', async () => {
    const pdf = file({ fileName: 'paper.pdf', content: `%PDF-1.7\n${freshText()}` });
    expect(await accepted(await sendParts(pdf))).toMatchObject({ file_name: 'paper.pdf', format: 'pdf' });
  });

  test('keeps every byte of a file, those that look like a boundary too', async () => {
    const content = Buffer.from(`${freshText()}\r\n--${BOUNDARY.slice(0, -1)}\r\n\r\n--\r\n${letters(100_000)}\r\n`);
    const { document_id: id } = (await sendParts(file({ content }))).body;
    const { sha256 } = (await api.request('GET', `/documents/${id as string}`)).body;
    expect(sha256).toBe(await sha256Of(content));
  });

  test.each<[string, Part[], RegExp]>([
    ['no file', [field('user_id', 'ana')], /has no file/],
    ['no part', [], /has no file/],
    ['two files', [file(), file()], /more than one file/],
    ['a file under another name', [file({ name: 'upload' })], /another part than "file"/],
    ['a file without a name', [file({ name: '' })], /another part than "file"/],
    ['a part without a name', [field('', 'x'), file()], /part without a name/],
    ['a part "file" that is a field', [field('file', 'x')], /needs a filename/],
    [
      'a nested name',
      [field('metadata[a][b]', '1'), file()],
      /unknown field "metadata\[a\]\[b\]"; allowed: content_type/,
    ],
    ['a name nested deep', [field(`a${'[b]'.repeat(3_000)}`, '1'), file()], /field name over 64/],
    ['a name of a prototype', [field('__proto__', '{"polluted":1}'), file()], /unknown field "__proto__"/],
    ['a field twice', [field('title', 'a'), field('title', 'b'), file()], /title: expected a string/],
    ['33 parts', [...Array.from({ length: 32 }, () => field('tags', 'x')), file()], /more than 32 parts/],
    ['10,000 parts', Array.from({ length: 10_000 }, () => field('tags', 'x')), /more than 32 parts/],
    ['a field too long', [field('metadata', `{"a":"${letters(16_384)}"}`), file()], /field over 16384 bytes/],
    ['metadata that is no JSON', [field('metadata', '{"canary'), file()], /metadata: malformed JSON/],
    ['metadata that is no object', [field('metadata', '[1]'), file()], /metadata: expected an object/],
    ['a time that is none', [field('event_time', 'soon'), file()], /event_time: expected/],
    ['a tag too long', [field('tags', letters(129)), file()], /tags.*at most 128/],
    ['a file name too long', [file({ fileName: `${letters(252)}.txt` })], /file_name: at most 255/],
    [
      'a charset that nobody knows',
      [
        { headers: ['content-disposition: form-data; name="title"', 'content-type: text/plain; charset=x-none'] },
        file(),
      ],
      /field that is not UTF-8/,
    ],
    [
      'a file in base64',
      [{ headers: ['content-disposition: form-data; name="file"; filename="a"', 'content-transfer-encoding: base64'] }],
      /content-transfer-encoding/,
    ],
    ['a header that is none', [{ headers: ['content disposition'] }, file()], /malformed/],
    ['a header of 20 kB', [{ headers: [`x-padding: ${letters(20_000)}`] }, file()], /malformed/],
  ])('with %s is refused', async (_name, parts, detail) => {
    await expectRefused(() => sendForm(multipart(parts)), 400, detail);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  test('of 32 parts with fields at their limits is taken', async () => {
    const metadata = `{"a":"${letters(16_384 - '{"a":""}'.length)}"}`;
    const tags = Array.from({ length: 30 }, (_, index) => field('tags', `tag ${index}`));
    const fileName = `${letters(251)}.txt`;
    const document = await accepted(await sendParts(field('metadata', metadata), ...tags, file({ fileName })));
    expect(document).toMatchObject({ metadata: JSON.parse(metadata) as object, file_name: fileName });
    expect(document['tags']).toHaveLength(30);
  });

  test.each<[string, Buffer]>([
    ['has no end', multipart([file()], { end: '' })],
    [
      'ends in the middle of its file',
      multipart([file({ content: letters(100_000) })], { end: '' }).subarray(0, -50_000),
    ],
    ['ends in a part header', Buffer.from(`--${BOUNDARY}\r\ncontent-disp`)],
    ['ends after a boundary', Buffer.from(`--${BOUNDARY}`)],
    ['is something else', Buffer.from('{"text":"x"}')],
    ['is empty', Buffer.from('')],
  ])('that %s is refused', async (_name, body) => {
    await expectRefused(() => sendForm(body), 400, /malformed, or ends before its last boundary/);
  });

  test('without a boundary, or with an endless one, is refused', async () => {
    const send = (type: string) => () => sendForm(multipart([file()]), { 'content-type': type });
    await expectRefused(send('multipart/form-data'), 400, /names no boundary/);
    await expectRefused(send(`multipart/form-data; boundary=${letters(300)}`), 400, /too long a boundary/);
  });

  test.each<[string, string | null]>([
    ['../../etc/passwd.txt', 'passwd.txt'],
    ['/absolute/name.txt', 'name.txt'],
    ['C:\\\\folder\\\\name.txt', 'name.txt'],
    ['evil\u202etxt.exe.txt', 'eviltxt.exe.txt'],
    ['tab\u0009and\u0085more.txt', 'tabandmore.txt'],
    ['-rf.txt', '-rf.txt'],
    ['CON', 'CON'],
    ['..', null],
    ['a/', null],
  ])('may call its file %j: that is only data', async (fileName, kept) => {
    const before = fs.readdirSync(folder);
    const document = await accepted(await sendParts(file({ fileName })));
    expect(document['file_name']).toBe(kept);
    expect(fs.readdirSync(folder)).toEqual(before);
    for (const name of listUploads()) expect(name).toMatch(/^[0-9a-f-]{36}\.upload$/);
  });

  test.each<[string, Part, RegExp]>([
    ['PDF that is text', { fileName: 'paper.pdf', content: 'no PDF at all' }, /pdf/],
    ['text that is a PDF', { fileName: 'notes.md', content: '%PDF-1.7\n' }, /PDF/],
    ['picture', { fileName: 'a.png', content: Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex') }, /not read/],
    ['program', { fileName: 'a', content: Buffer.from('7f454c4602010100', 'hex') }, /not read|no known format/],
  ])('with a %s is a 415', async (_name, part, detail) => {
    await expectRefused(() => sendParts(file(part)), 415, detail);
  });

  test('that breaks off leaves nothing', async () => {
    const before = listUploads();
    const socket = net.connect(api.port, '127.0.0.1');
    socket.write(head({ 'content-type': FORM_TYPE, 'content-length': '100000' }));
    socket.write(multipart([file({ content: letters(50_000) })], { end: '' }));
    await expect.poll(() => listUploads().length).toBe(before.length + 1);
    socket.destroy();
    await expect.poll(() => listUploads()).toEqual(before);
  });
});

describe('a limit', () => {
  test('of a file passes at its last byte and is refused at the next, in a form and in JSON', async () => {
    for (const bytes of [MB, MB + 1]) {
      const content = freshText().padEnd(bytes, '.');
      const data = Buffer.from(`${freshText()}`.padEnd(bytes, '.')).toString('base64');
      const text = freshText().padEnd(bytes, '.');
      const sends = [
        () => sendParts(file({ content })),
        () => sendJson({ data, encoding: 'base64' }),
        () => sendJson({ text }),
      ];
      for (const send of sends) {
        if (bytes === MB) await accepted(await send());
        else await expectRefused(send, 413, /over 1 MB/);
      }
    }
  });

  test.each([FORM_TYPE, 'application/json'])('that %s announces to exceed is told before it was sent', async (type) => {
    const socket = net.connect(api.port, '127.0.0.1');
    socket.write(head({ 'content-type': type, 'content-length': '100000000' }));
    const [reply] = (await once(socket, 'data')) as [Buffer];
    expect(reply.toString()).toMatch(/^HTTP\/1.1 413 /);
    socket.destroy();
  });

  test('that 20 bodies without an announced length exceed at once ends all of them, and none is kept', async () => {
    const before = listUploads();
    const start = multipart([file({ content: '' })], { end: '' }).subarray(0, -2);
    const statuses = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        index % 2 === 0
          ? pour(FORM_TYPE, start, 20 * MB)
          : pour('application/json', Buffer.from('{"encoding":"utf8","data":"'), 20 * MB),
      ),
    );
    expect(statuses).toEqual(statuses.map(() => 413));
    expect(listUploads()).toEqual(before);
  });

  test('of what waits to be read refuses more until there is room', async () => {
    await using full = await startApi({
      folder: tempFolder(),
      settings: { OM_EMBEDDINGS: 'none', OM_UPLOADS_MAX_MB: '1' },
    });
    const send = (body: object) => full.request('POST', '/memory/ingest', { body });
    const first = await send({ text: letters(MB) });
    expect(first.status).toBe(202);
    const refused = await send({ text: freshText() });
    expect([refused.status, refused.body.code]).toEqual([503, 'unavailable']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    await full.request('DELETE', `/documents/${first.body['document_id'] as string}`);
    expect((await send({ text: freshText() })).status).toBe(202);
  });
});

describe('forms that arrive at once', () => {
  test('are bounded by what they announce, as long as they are on their way', async () => {
    await using full = await startApi({
      folder: tempFolder(),
      settings: { OM_EMBEDDINGS: 'none', OM_UPLOADS_MAX_MB: '1' },
    });
    const socket = net.connect(Number(new URL(full.url).port), '127.0.0.1');
    socket.write(
      [
        'POST /memory/ingest HTTP/1.1',
        `host: ${new URL(full.url).host}`,
        `authorization: Bearer ${ADMIN_KEY}`,
        `content-type: ${FORM_TYPE}`,
        `content-length: ${MB}\r\n\r\n`,
      ].join('\r\n'),
    );
    socket.write(multipart([file({ content: letters(1_000) })], { end: '' }));
    const send = () => full.request('POST', '/memory/ingest', { body: { text: freshText() } });
    await expect.poll(async () => (await send()).status).toBe(503);
    socket.destroy();
    await expect.poll(async () => (await send()).status).toBe(202);
  });
});

describe('a client that stops sending', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] }));
  afterEach(() => void vi.useRealTimers());

  const start = multipart([file({ content: letters(1_000) })], { end: '' });
  const upload = (type: string) => {
    const request = Object.assign(new PassThrough(), { headers: { 'content-type': type } });
    return request as unknown as PassThrough & http.IncomingMessage;
  };

  fileTest.each<[string, (request: PassThrough & http.IncomingMessage, tenant: Tenant) => Promise<unknown>]>([
    [FORM_TYPE, (request, tenant) => receiveForm(request, tenant, MB)],
    ['application/json', (request, tenant) => receiveJson(request, { tenant, fileBytes: MB }, () => Promise.resolve())],
  ])('%s is given up, and so is one that never ends', async (type, receive) => {
    const before = listUploads();
    const tenant = await api.engine.tenant('default');
    const silent = upload(type);
    const refused = expect(receive(silent, tenant)).rejects.toMatchObject({
      code: 'invalid',
      message: /bytes came in 30 s/,
    });
    silent.write(start);
    await vi.advanceTimersByTimeAsync(30_000);
    await refused;
    const slow = upload(type);
    const cut = expect(receive(slow, tenant)).rejects.toMatchObject({ code: 'invalid', message: /within 92 s/ });
    slow.write(start);
    for (let seconds = 0; seconds < 100; seconds += 20) {
      slow.write('x'.repeat(40 * 1024));
      await vi.advanceTimersByTimeAsync(20_000);
    }
    await cut;
    for (const request of [silent, slow]) request.destroy(); // Until then their bytes count for the whole process.
    expect(vi.getTimerCount()).toBe(0);
    expect(listUploads()).toEqual(before);
  });
});

const smallDisk = mountSmallDisk();
if (smallDisk !== undefined) afterAll(() => unmount(smallDisk));

test.skipIf(smallDisk === undefined)('a full disk is a 507, and nothing of the file is left', async () => {
  const disk = smallDisk!;
  await using full = await startApi({ folder: disk, settings: { OM_EMBEDDINGS: 'none' } });
  const send = (body: object) => full.request('POST', '/memory/ingest', { body });
  expect((await send({ text: freshText() })).status).toBe(202);
  const listed = () => fs.readdirSync(path.join(disk, 'cairn.uploads'));
  const before = listed();
  const ballast = path.join(disk, 'ballast');
  fillDisk(ballast, 4 * MB);
  const form = multipart([file({ content: letters(10 * MB) })]);
  for (const refused of [
    await full.request('POST', '/memory/ingest', { body: form, headers: { 'content-type': FORM_TYPE } }),
    await send({ text: letters(10 * MB) }),
  ]) {
    expect([refused.status, refused.body.code]).toEqual([507, 'storage_full']);
  }
  expect(listed()).toEqual(before);
  fs.rmSync(ballast);
  expect((await send({ text: freshText() })).status).toBe(202);
});

test.skipIf(smallDisk === undefined)(
  'files that arrive at once, of all tenants, leave the reserve of the disk',
  async () => {
    await using full = await startApi({ folder: smallDisk!, settings: { OM_EMBEDDINGS: 'none' } });
    full.engine.control.createTenant('acme');
    const tenants = await Promise.all(['default', 'acme'].map((id) => full.engine.tenant(id)));
    const { bavail, blocks, bsize } = fs.statfsSync(smallDisk!);
    const size = 16 * MB;
    const begun: Upload[] = [];
    const begin = async (no: number) => begun.push(await tenants[no % 2]!.createUpload(size));
    const codes = await Promise.all(
      Array.from({ length: 16 }, async (_, no) => begin(no).catch(({ code }: EngineError) => code)),
    );
    const refused = codes.filter((code) => typeof code === 'string');
    expect(new Set(refused)).toEqual(new Set(['storage_full']));
    expect(begun.length).toBeGreaterThan(1);
    expect(begun.length * size).toBeLessThan(bavail * bsize - (blocks * bsize) / 8);
    // What is written is counted by the disk, and a file that is given up counts no more.
    const content = Buffer.alloc(size);
    for (const upload of begun.splice(1)) {
      fs.writeFileSync(upload.path, upload.createEncoder().update(content));
      fs.truncateSync(upload.path);
    }
    await begin(0);
    await begin(1);
    for (const upload of begun) await upload.discard();
  },
);

test.skipIf(smallDisk === undefined).each([
  ['a form', FORM_TYPE, (letters: string) => multipart([file({ content: letters })])],
  ['JSON', 'application/json', (letters: string) => Buffer.from(JSON.stringify({ text: letters }))],
])('%s is a 507 as soon as others have taken the space for its rest', async (_name, type, bodyOf) => {
  await using full = await startApi({ folder: smallDisk!, settings: { OM_EMBEDDINGS: 'none' } });
  const uploads = path.join(smallDisk!, 'cairn.uploads');
  const listed = () => (fs.existsSync(uploads) ? fs.readdirSync(uploads) : []);
  const before = listed();
  const ballast = path.join(smallDisk!, 'ballast');
  const body = bodyOf(letters(10 * MB));
  const request = http.request(`${full.url}/memory/ingest`, {
    method: 'POST',
    headers: { 'content-type': type, 'content-length': body.length, authorization: `Bearer ${ADMIN_KEY}` },
  });
  request.on('error', () => {});
  const answered = once(request, 'response') as Promise<[http.IncomingMessage]>;
  request.write(body.subarray(0, 2 * MB));
  await expect.poll(() => listed().length).toBe(before.length + 1);
  const { blocks, bsize } = fs.statfsSync(smallDisk!);
  fillDisk(ballast, (blocks * bsize) / 8 + MB);
  request.end(body.subarray(2 * MB));
  const [response] = await answered;
  const problem: unknown = JSON.parse((await response.toArray()).join(''));
  expect(problem).toMatchObject({
    status: 507,
    code: 'storage_full',
    detail: expect.stringMatching(/files that are arriving/),
  });
  expect(listed()).toEqual(before);
  fs.rmSync(ballast);
});

function head(headers: Record<string, string>): string {
  const lines = Object.entries({ host: 'localhost', 'x-api-key': ADMIN_KEY, ...headers });
  return `POST /memory/ingest HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
}

/** Sends a body without saying how long it will be, until it is answered or `bytes` were sent. @returns the status */
async function pour(type: string, start: Buffer, bytes: number): Promise<number | undefined> {
  const headers = { 'content-type': type, authorization: `Bearer ${ADMIN_KEY}` };
  const request = http.request({ port: api.port, host: '127.0.0.1', method: 'POST', path: '/memory/ingest', headers });
  request.on('error', () => {});
  const answered = once(request, 'response') as Promise<[http.IncomingMessage]>;
  let isAnswered = false;
  void answered.then(() => void (isAnswered = true));
  request.write(start);
  const chunk = Buffer.alloc(64 * 1024, 'x');
  for (let sent = 0; sent < bytes && !isAnswered; sent += chunk.length) {
    if (!request.write(chunk)) await Promise.race([once(request, 'drain'), answered]);
  }
  const [response] = await answered;
  request.destroy();
  return response.statusCode;
}

async function sha256Of(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return Buffer.from(await crypto.subtle.digest('SHA-256', bytes)).toString('hex');
}
