import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStore } from '../../src/engine/store/open-store.ts';
import { until } from '../support/attacks/silent-readers.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { chance, type Chance, expectWell, inParallel } from './attack.ts';

const folder = tempFolder();
let api: TestApi;
beforeAll(async () => {
  api = await startApi({ folder, settings: { OM_EMBEDDINGS: 'none' } });
});
afterAll(() => api.stop());

/** Time after which a connection is closed that the server keeps open for more, ms. */
const PATIENCE_MS = 700;

/** Sends bytes on a connection of their own and ends it. @returns all that came back */
function sendBytes(bytes: Buffer, { ends = true } = {}): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const done = () => {
      socket.destroy();
      resolve(Buffer.concat(chunks).toString('latin1'));
    };
    const socket = net.connect(api.port, '127.0.0.1', () => (ends ? socket.end(bytes) : socket.write(bytes)));
    socket.setTimeout(PATIENCE_MS, done);
    socket
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('close', done)
      .on('error', done);
  });
}

const statusesOf = (reply: string) => [...reply.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status));

const HEAD = `Host: 127.0.0.1\r\nAuthorization: Bearer ${ADMIN_KEY}\r\n`;
const SECRET_ADD = `POST /memory/add HTTP/1.1\r\n${HEAD}Content-Type: application/json\r\nContent-Length: 22\r\n\r\n{"content":"smuggled"}`;

describe('a request that a proxy and a server could read differently', () => {
  const post = 'POST /memory/query HTTP/1.1\r\n';
  test.each([
    ['two lengths', `${post}${HEAD}Content-Length: 4\r\nContent-Length: 200\r\n\r\n{}  ${SECRET_ADD}`],
    [
      'a length and chunks',
      `${post}${HEAD}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${SECRET_ADD}`,
    ],
    ['chunks under another spelling', `${post}${HEAD}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${SECRET_ADD}`],
    ['chunks twice', `${post}${HEAD}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n${SECRET_ADD}`],
    ['a blank before the colon', `${post}${HEAD}Content-Length : 4\r\n\r\n{}  ${SECRET_ADD}`],
    ['a folded header', `${post}${HEAD}X: a\r\n b: c\r\nContent-Length: 999\r\n\r\n${SECRET_ADD}`],
    ['a length with a sign', `${post}${HEAD}Content-Length: +4\r\n\r\n{}  ${SECRET_ADD}`],
    ['a length in hex', `${post}${HEAD}Content-Length: 0x4\r\n\r\n{}  ${SECRET_ADD}`],
    ['a negative length', `${post}${HEAD}Content-Length: -1\r\n\r\n${SECRET_ADD}`],
    ['a chunk size that is none', `${post}${HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n${SECRET_ADD}`],
    [
      'a chunk size beyond all bounds',
      `${post}${HEAD}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n${SECRET_ADD}`,
    ],
    ['bare line feeds', `${post}${HEAD}`.replaceAll('\r\n', '\n') + `Content-Length: 4\n\n{}  ${SECRET_ADD}`],
    ['a NUL in a header', `${post}${HEAD}X: a\0b\r\nContent-Length: 4\r\n\r\n{}  ${SECRET_ADD}`],
    ['no host', `GET /memory/all HTTP/1.1\r\nAuthorization: Bearer ${ADMIN_KEY}\r\n\r\n`],
    ['an unknown version', `GET /health HTTP/9.9\r\n${HEAD}\r\n`],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a head over all bounds', `GET /health HTTP/1.1\r\n${HEAD}X: ${'a'.repeat(70_000)}\r\n\r\n`],
    ['a thousand headers', `GET /health HTTP/1.1\r\n${HEAD}${'A: b\r\n'.repeat(3_000)}\r\n`],
  ])('with %s does not bring a second one in', async (_name, bytes) => {
    const reply = await sendBytes(Buffer.from(bytes, 'latin1'));
    for (const status of statusesOf(reply)) expect(status).toBeLessThan(500);
    const { body } = await api.request('GET', '/memory/all?l=200');
    expect(body.items.map(({ content }) => content)).not.toContain('smuggled');
    await expectWell(api);
  });
});

/** Changes some bytes: another one, one less, one more, a piece twice, or the end away. */
function mutated(bytes: Buffer, { below }: Chance): Buffer {
  let changed = bytes;
  for (let times = 1 + below(4); times > 0; times -= 1) {
    const at = below(changed.length + 1);
    const [before, after] = [changed.subarray(0, at), changed.subarray(at)];
    switch (below(5)) {
      case 0:
        changed = Buffer.concat([before, Buffer.from([below(256)]), after.subarray(1)]);
        break;
      case 1:
        changed = Buffer.concat([before, after.subarray(1 + below(8))]);
        break;
      case 2:
        changed = Buffer.concat([before, Buffer.from([below(256), below(256)]), after]);
        break;
      case 3:
        changed = Buffer.concat([before, after.subarray(0, 40), after]);
        break;
      default:
        changed = before;
    }
  }
  return changed;
}

test('requests with bytes changed at random get an answer below 500 or none, and the service stays well', async () => {
  const luck = chance('mutated requests');
  const body = '{"query":"a","filters":{"metadata":{"a":{"$gt":1}},"tags":["b"]},"as_of":1790000000000}';
  const add = '{"content":"a","metadata":{"k":[1,{"b":null}]},"tags":["t"]}';
  const requests = [
    `POST /memory/query HTTP/1.1\r\n${HEAD}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    `POST /memory/add HTTP/1.1\r\n${HEAD}Content-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: ${add.length}\r\n\r\n${add}`,
    `GET /memory/all?l=5&user_id=a%20b&tag=x HTTP/1.1\r\n${HEAD}\r\n`,
    `PATCH /memory/01a1fe30-e25b-7576-a0c2-3c4e3646bd72 HTTP/1.1\r\n${HEAD}If-Match: "1"\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"title":1}`,
  ].map((text) => Buffer.from(text, 'latin1'));
  const one = async () => {
    const bytes = mutated(luck.of(requests), luck);
    const wrong = statusesOf(await sendBytes(bytes)).filter((status) => status >= 500);
    expect(wrong, bytes.toString('base64')).toEqual([]);
  };
  await inParallel(3_000, one);
  await expectWell(api);
});

test('forms with bytes changed at random leave no file behind that no document owns', async () => {
  const luck = chance('mutated forms');
  const boundary = '----attack';
  const part = (head: string, content: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n`;
  const form = Buffer.from(
    part('name="user_id"', 'form') +
      part('name="metadata"', '{"a":1}') +
      part('name="file"; filename="a.txt"\r\nContent-Type: text/plain', 'The text of a file.') +
      `--${boundary}--\r\n`,
  );
  const one = async () => {
    const body = mutated(form, luck);
    const head = `POST /memory/ingest HTTP/1.1\r\n${HEAD}Connection: close\r\nContent-Type: multipart/form-data; boundary=${boundary}\r\n`;
    const bytes = Buffer.concat([Buffer.from(`${head}Content-Length: ${body.length}\r\n\r\n`), body]);
    const wrong = statusesOf(await sendBytes(bytes, { ends: false })).filter((status) => status >= 500);
    expect(wrong, bytes.toString('base64')).toEqual([]);
  };
  await inParallel(4_000, one);
  await expectWell(api);
  const listFiles = () => {
    const uploads = fs.readdirSync(folder).filter((name) => name.includes('uploads'));
    return uploads.flatMap((name) => fs.readdirSync(path.join(folder, name))).sort();
  };
  const store = openStore(path.join(folder, 'cairn.sqlite'), { role: 'reader' });
  const owned = store.prepare(`SELECT upload FROM document_generations WHERE upload <> '' ORDER BY upload`).pluck();
  // Those that were broken off last are still being removed.
  await until(() => isDeepStrictEqual(listFiles(), owned.all()));
  store.close();
});
