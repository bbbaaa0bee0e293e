import { once } from 'node:events';
import net from 'node:net';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BodyPlaces, bodyPlaces } from '../../src/api/body-places.ts';
import { type HalfSent, sendHalf } from '../support/attacks/half-sent-bodies.ts';
import { until } from '../support/attacks/silent-readers.ts';
import { exportText } from '../support/portable.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { fileTest } from '../support/store-settings.ts';

const MIB = 1024 * 1024;
const KEY = `authorization: Bearer ${ADMIN_KEY}\r\n`;
const JSON_TYPE = 'content-type: application/json\r\n';

let api: TestApi;
beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
});
afterAll(() => api.stop());

const add = { head: `POST /memory/add HTTP/1.1\r\n${KEY}${JSON_TYPE}`, bytes: MIB };

/** Waits until each of `connections` connections has an answer or holds all of its body but one byte. */
async function arrived({ answers }: HalfSent, connections: number): Promise<void> {
  await until(() => answers.length + Math.floor(bodyPlaces.bytes / (MIB - 8 * 1024 - 1)) >= connections);
}

/** Sends the last bytes of all bodies and then a request for /health, and returns `value` when that is answered. */
async function atAnswer(half: HalfSent, value: () => number): Promise<number> {
  const probe = net.connect(api.port, '127.0.0.1');
  await once(probe, 'connect');
  half.sendLast();
  probe.write('GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n');
  await once(probe, 'data');
  probe.destroy();
  return value();
}

describe('bodies whose last byte does not come', () => {
  test('hold at most 32 MiB of a key; further ones get 503 and a time, and all is given back', async () => {
    using half = await sendHalf(api.port, { ...add, connections: 40 });
    await arrived(half, 40);
    expect(bodyPlaces.bytes).toBeLessThanOrEqual(32 * MIB);
    expect(half.answers.length).toBeGreaterThanOrEqual(7);
    for (const answer of half.answers) expect(answer).toEqual({ status: 503, retryAfter: '1' });
    half[Symbol.dispose]();
    await until(() => bodyPlaces.bytes === 0);
  });

  test('are given back 32 in each turn of the event loop when their connections close together', async () => {
    const [connections, bytes] = [200, 16 * 1024];
    const ofOne = bytes - 1 - 8 * 1024;
    using half = await sendHalf(api.port, { ...add, bytes, connections });
    await until(() => bodyPlaces.bytes === connections * ofOne);
    half[Symbol.dispose]();
    let most = 0;
    for (let before = bodyPlaces.bytes; before > 0; before = bodyPlaces.bytes) {
      await new Promise(setImmediate);
      most = Math.max(most, (before - bodyPlaces.bytes) / ofOne);
    }
    // What was closed before others waited, and the first of those that did, may fall in one turn.
    expect(most).toBeLessThanOrEqual(64);
  });

  test.each([
    ['/memory/add/batch', MIB],
    ['/import', 4 * MIB],
  ])('are bounded as lines of NDJSON to %s, too', async (path, bytes) => {
    const head = `POST ${path} HTTP/1.1\r\n${KEY}content-type: application/x-ndjson\r\n`;
    const connections = Math.ceil((40 * MIB) / bytes);
    using half = await sendHalf(api.port, { head, bytes, connections });
    await until(() => half.answers.length > 0);
    expect(half.answers[0]).toEqual({ status: 503, retryAfter: '1' });
    expect(bodyPlaces.bytes).toBeLessThanOrEqual(32 * MIB);
    half[Symbol.dispose]();
    await until(() => bodyPlaces.bytes === 0);
  });

  fileTest('count in an import until they are stored', async () => {
    for (let no = 0; no < 3; no++) await api.add({ content: `${no} ${'long '.repeat(50_000)}` });
    const body = await exportText(await api.engine.tenant('default'));
    const other = new Database(api.engine.config.paths.defaultTenant);
    other.exec('BEGIN IMMEDIATE');
    const headers = { 'content-type': 'application/x-ndjson' };
    const reply = api.request('POST', '/import', { body, headers });
    await until(() => bodyPlaces.bytes > 3 * 240_000);
    other.exec('COMMIT');
    other.close();
    expect((await reply).text).toContain('"known":{"memory":3}');
    await until(() => bodyPlaces.bytes === 0);
  });

  test('are bounded where a body is spooled and its outline grows, too', async () => {
    const connections = 48;
    // What is neither `data` nor `text` of a document is kept in memory, up to 1 MiB of it.
    const head = `POST /documents/batch HTTP/1.1\r\n${KEY}${JSON_TYPE}`;
    using half = await sendHalf(api.port, { head, bytes: MIB + 1, connections });
    await until(() => half.answers.some(({ status }) => status === 503));
    expect(bodyPlaces.bytes).toBeLessThanOrEqual(32 * MIB);
    half[Symbol.dispose]();
    await until(() => bodyPlaces.bytes === 0);
  });

  fileTest(
    'go into their outlines in turns once many pieces come together, and others are answered in between',
    async () => {
      const [connections, last] = [40, 128 * 1024];
      const metadata = { lists: Array.from({ length: (last + 16 * 1024) / 3 }, () => []) };
      const body = Buffer.from(JSON.stringify({ text: 'x'.repeat(MIB), metadata }));
      const head = `POST /memory/ingest HTTP/1.1\r\n${KEY}${JSON_TYPE}`;
      using half = await sendHalf(api.port, { head, body, last, connections });
      // The text is on disk, and its place in the outline has 38 bytes.
      const held = connections * (body.length - last - MIB + 38 - 8 * 1024);
      await until(() => bodyPlaces.bytes === held);
      const taken = await atAnswer(half, () => bodyPlaces.bytes - held);
      expect(taken).toBeLessThan((connections * last) / 4);
      await until(() => half.answers.length === connections);
      expect(new Set(half.answers.map(({ status }) => status))).toEqual(new Set([400]));
      half[Symbol.dispose]();
      await until(() => bodyPlaces.bytes === 0);
    },
  );

  test('keep neither short requests nor uploads to disk from being answered', async () => {
    using half = await sendHalf(api.port, { ...add, connections: 40 });
    await arrived(half, 40);
    const query = await api.request('POST', '/memory/query', { body: { query: 'anything' } });
    expect(query.status).toBe(200);
    const text = 'A text that is longer than the memory that is left. '.repeat(40_000);
    const upload = await api.request('POST', '/memory/ingest', { body: { text } });
    expect(upload.status).toBe(202);
    half[Symbol.dispose]();
    await until(() => bodyPlaces.bytes === 0);
  });

  test('are parsed a few in each turn once the last bytes come together, and others are answered in between', async () => {
    const metadata = Object.fromEntries(Array.from({ length: 5_000 }, (_, no) => [`k${no}`, 0]));
    const body = Buffer.from(JSON.stringify({ content: 'x', metadata }));
    using half = await sendHalf(api.port, { head: add.head, body, connections: 60 });
    await until(() => bodyPlaces.bytes === 60 * (body.length - 1 - 8 * 1024));
    const before = await atAnswer(half, () => half.answers.length);
    await until(() => half.answers.length === 60);
    expect(new Set(half.answers.map(({ status }) => status))).toEqual(new Set([400]));
    expect(before).toBeLessThan(30);
    half[Symbol.dispose]();
    await until(() => bodyPlaces.bytes === 0);
  });

  test('of a sign-in, which comes without a key, are refused over 8 KiB', async () => {
    const head = `POST /console/session HTTP/1.1\r\nx-cairn-console: 1\r\n${JSON_TYPE}`;
    using half = await sendHalf(api.port, { head, bytes: 8 * 1024 + 1, connections: 1 });
    await until(() => half.answers.length > 0);
    expect(half.answers[0]!.status).toBe(413);
    using whole = await sendHalf(api.port, { head, bytes: 8 * 1024, connections: 1 });
    const body = { key: 'x'.repeat(4_096) };
    const reply = await api.request('POST', '/console/session', {
      body,
      key: null,
      headers: { 'x-cairn-console': '1' },
    });
    expect(reply.status).toBe(401);
    expect(whole.answers).toEqual([]);
    expect(bodyPlaces.bytes).toBe(0);
  });
});

test('32 connections of one key that load batches of 1 MiB are never refused', async () => {
  const statuses = await Promise.all(
    Array.from({ length: 32 }, async (_, connection) => {
      const found: number[] = [];
      for (let batch = 0; batch < 3; batch++) {
        const items = [{ content: `batch ${batch} of connection ${connection}` }];
        const body = JSON.stringify({ items });
        found.push((await api.request('POST', '/memory/add/batch', { body: body.padEnd(MIB) })).status);
      }
      return found;
    }),
  );
  expect(new Set(statuses.flat())).toEqual(new Set([202]));
  await until(() => bodyPlaces.bytes === 0);
});

describe('places of bodies', () => {
  test('are bounded over many keys, and a key that holds nothing may still send one body', () => {
    const places = new BodyPlaces();
    const all = [];
    for (let key = 0; key < 4; key++)
      for (let no = 0; no < 32; no++) {
        const place = places.enter(`key ${key}`, `tenant ${key}`);
        all.push(place);
        place.hold(MIB + 8 * 1024);
      }
    expect(places.bytes).toBe(128 * MIB);
    const first = places.enter('one more', 'one');
    first.hold(MIB);
    const second = places.enter('one more', 'one');
    second.hold(8 * 1024);
    expect(() => second.hold(8 * 1024 + 1)).toThrow(
      expect.objectContaining({ code: 'unavailable', retryAfterMs: 1_000 }),
    );
    for (const place of [...all, first, second]) place.leave();
    expect(places.bytes).toBe(0);
  });

  test('are bounded over the many keys of one tenant, and others have their share', () => {
    const places = new BodyPlaces();
    const hold = (key: string, tenant: string) => {
      const place = places.enter(key, tenant);
      place.hold(MIB + 8 * 1024);
      return place;
    };
    const held = Array.from({ length: 64 }, (_, n) => hold(`key ${n}`, 'many'));
    expect(() => hold('one more', 'many')).toThrow(expect.objectContaining({ code: 'unavailable' }));
    const others = Array.from({ length: 32 }, () => hold('own', 'other'));
    held[0]!.leave();
    held.push(hold('one more', 'many'));
    for (const place of [...held, ...others]) place.leave();
    expect(places.bytes).toBe(0);
  });

  test('count what is held now, and nothing once they are left', () => {
    const places = new BodyPlaces();
    const place = places.enter('a key', 'a tenant');
    for (const bytes of [MIB, 2 * MIB, 0, MIB]) place.hold(bytes);
    expect(places.bytes).toBe(MIB - 8 * 1024);
    place.leave();
    place.hold(MIB);
    place.leave();
    expect(places.bytes).toBe(0);
  });
});
