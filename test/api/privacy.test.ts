import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { plantedValues } from '../engine/privacy/planted-values.ts';
import { jsonLines } from '../support/portable.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { fileTest } from '../support/store-settings.ts';

const planted = new Map(plantedValues(createRandom(1), 1).map(({ kind, value }) => [kind, value]));
const KEY = planted.get('github_key')!;
const IBAN = planted.get('iban')!;
const MAIL = planted.get('email')!;

describe('what is added', () => {
  let api: TestApi;
  const folder = tempFolder();
  beforeAll(async () => void (api = await startApi({ folder, settings: { OM_EMBEDDINGS: 'none' } })));
  afterAll(() => api.stop());
  const setPolicy = (secrets: string, personal: string) =>
    api.request('PUT', '/settings/privacy', { body: { secrets, personal } });
  beforeEach(async () => void (await setPolicy('off', 'off')));
  const add = (item: object) => api.request('POST', '/memory/add', { body: item });
  const stored = async (id: string) => (await api.request('GET', `/memory/${id}`)).body;

  test('is stored as it is by default', async () => {
    const { body } = await add({ content: `the key is ${KEY}` });
    expect((await stored(body.id))['content']).toBe(`the key is ${KEY}`);
    expect(body).not.toHaveProperty('redacted');
  });

  test('holds markers in place of values in every field, and the reply counts them', async () => {
    await setPolicy('redact', 'redact');
    const { status, body } = await add({
      content: `pay to ${IBAN}, then write to ${MAIL}`,
      title: `for ${MAIL}`,
      gist: `about ${KEY}`,
      tags: [KEY, 'plain'],
      entities: [MAIL],
      files: [`/tmp/${KEY}`],
      metadata: { deep: [{ token: KEY }], password: 'Ux7!mmPq29zz', n: 7 },
    });
    expect([status, body['redacted']]).toEqual([202, { iban: 1, email: 3, github_key: 4, password: 1 }]);
    const memory = await stored(body.id);
    expect(JSON.stringify(memory)).not.toContain(KEY);
    expect(memory).toMatchObject({
      content: 'pay to [REDACTED:iban], then write to [REDACTED:email]',
      tags: ['[REDACTED:github_key]', 'plain'],
      metadata: { deep: [{ token: '[REDACTED:github_key]' }], password: '[REDACTED:password]', n: 7 },
    });
  });

  test('is recognised as a duplicate by its redacted text', async () => {
    await setPolicy('redact', 'off');
    const first = await add({ content: `our deploy key is ${KEY} since May` });
    const again = await add({ content: `our deploy key is ${KEY} since May` });
    expect([again.status, again.body.id]).toEqual([200, first.body.id]);
  });

  test('is marked in its metadata, by which queries filter', async () => {
    await setPolicy('mark', 'mark');
    const { body } = await add({ content: `marmalade goes to ${MAIL}`, metadata: { team: 'a' } });
    expect(body['sensitive']).toEqual(['email']);
    expect((await stored(body.id)).metadata).toEqual({ team: 'a', sensitive: ['email'] });
    const reply = await api.request('POST', '/memory/query', {
      body: { query: 'marmalade', filters: { metadata: { sensitive: { $exists: true } } }, min_score: 0 },
    });
    expect([reply.status, reply.body.matches?.map(({ id }) => id)]).toEqual([200, [body.id]]);
  });

  test('is marked only where the metadata has room for it, also in a PATCH that changes the text alone', async () => {
    await setPolicy('mark', 'mark');
    const metadata = { notes: 'n'.repeat(16_380 - '{"notes":""}'.length) };
    const { body } = await add({ content: 'marmalade goes to nobody', metadata });
    const patch = (change: object) => api.request('PATCH', `/memory/${body.id}`, { body: change });
    const marked = await patch({ content: `marmalade goes to ${MAIL}` });
    // The reply tells of it all the same.
    expect([marked.status, marked.body['sensitive'], marked.body.metadata]).toEqual([200, ['email'], metadata]);
    expect(await stored(body.id)).toMatchObject({ content: `marmalade goes to ${MAIL}`, metadata });
    // What the caller sends itself has to fit.
    expect((await patch({ metadata: { sensitive: ['mine'] } })).status).toBe(400);
    expect((await patch({ content: `jam goes to ${MAIL}`, metadata: { more: 'words' } })).status).toBe(400);
    expect((await patch({ content: `jam goes to ${MAIL}`, metadata: { notes: null } })).status).toBe(200);
    expect((await stored(body.id)).metadata).toEqual({ sensitive: ['email'] });
  });

  test('stays marked where a PATCH of another field brings a value of another kind', async () => {
    await setPolicy('mark', 'mark');
    const { body } = await add({ content: `quince jelly goes to ${MAIL}` });
    const patch = (change: object) => api.request('PATCH', `/memory/${body.id}`, { body: change });
    const titled = await patch({ title: `has ${KEY}` });
    expect(titled.body).toMatchObject({ sensitive: ['github_key'], metadata: { sensitive: ['email', 'github_key'] } });
    expect((await patch({ title: 'has no key' })).body).not.toHaveProperty('sensitive');
    expect((await stored(body.id)).metadata).toEqual({ sensitive: ['email', 'github_key'] });
    // Whoever knows that a value is gone may say so.
    expect((await patch({ metadata: { sensitive: ['email'] } })).body.metadata).toEqual({ sensitive: ['email'] });
    await setPolicy('redact', 'mark');
    expect((await patch({ title: `has ${KEY} again` })).body['redacted']).toEqual({ github_key: 1 });
  });

  test('is refused with its kinds and fields, never its values', async () => {
    await setPolicy('refuse', 'off');
    const { status, text } = await add({ content: 'a text', title: `has ${KEY}` });
    expect(status).toBe(422);
    expect(text).toContain('title: holds github_key');
    expect(text).not.toContain(KEY);
    const batch = await api.request('POST', '/memory/add/batch', {
      body: { items: [{ content: 'the first is fine' }, { content: KEY }, { content: 'the third too' }] },
    });
    expect(batch.body).toMatchObject({ accepted: 2, rejected: 1 });
    expect(batch.body.results[1]).toMatchObject({ error: { code: 'unprocessable' } });
    const lines = await api.request('POST', '/memory/add/batch', {
      body: `${JSON.stringify({ content: KEY })}\n${JSON.stringify({ content: 'a line' })}\n`,
      headers: { 'content-type': 'application/x-ndjson' },
    });
    expect(lines.body).toMatchObject({ accepted: 1, rejected: 1 });
  });

  test('is screened in a PATCH, and an external_id with a secret is refused', async () => {
    await setPolicy('redact', 'off');
    const { body } = await add({ content: 'nothing in it yet' });
    const patched = await api.request('PATCH', `/memory/${body.id}`, { body: { content: `now ${KEY}`, tags: [KEY] } });
    expect(patched.body).toMatchObject({ content: 'now [REDACTED:github_key]', tags: ['[REDACTED:github_key]'] });
    expect((await add({ content: 'x y z', external_id: KEY })).status).toBe(422);
  });

  fileTest('has no secret in the conditions of a standing query', async () => {
    await setPolicy('redact', 'off');
    const filters = { tags: [KEY], metadata: { token: KEY, team: { $in: ['a', KEY] } }, sessions: ['s1'] };
    const { status, body } = await api.request('POST', '/standing', { body: { query: 'which deploy?', filters } });
    expect(status).toBe(201);
    expect(body['filters']).toEqual({
      tags: ['[REDACTED:github_key]'],
      metadata: { token: '[REDACTED:github_key]', team: { $in: ['a', '[REDACTED:github_key]'] } },
      sessions: ['s1'],
    });
    const file = new Database(path.join(folder, 'cairn.sqlite'), { readonly: true });
    const rows = file.prepare('SELECT query, filter, given FROM standing_queries').all();
    file.close();
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toContain(KEY);
    await setPolicy('refuse', 'off');
    const refused = await api.request('POST', '/standing', { body: { query: 'which deploy?', filters } });
    expect([refused.status, refused.text.includes(KEY)]).toEqual([422, false]);
  });

  test('has no secret in the URL of a page, which no marker could stand in', async () => {
    await setPolicy('redact', 'off');
    const url = `https://example.com/report?access_token=${KEY}`;
    const { status, text } = await api.request('POST', '/memory/ingest/url', { body: { url } });
    expect([status, text.includes(KEY)]).toEqual([422, false]);
    expect(text).toContain('url: holds a sensitive value');
    expect((await api.request('GET', '/documents')).body['total']).toBe(0);
  });

  fileTest('has no secret where an import brings it as an author, a URL or the key of an item', async () => {
    await setPolicy('redact', 'off');
    const at = 1_795_000_000_000;
    const times = { created_at: at, updated_at: at, read_at: at };
    const document = { type: 'document', user_id: 'ana', source: 'url', chunks: 0, authors: [KEY], ...times };
    const item = { namespace: 'a', key: KEY };
    const lines = [
      { ...document, id: '01a1fe30-e25b-7576-a0c2-3c4e3646bd01', url: 'https://example.com/a' },
      { ...document, id: '01a1fe30-e25b-7576-a0c2-3c4e3646bd02', url: `https://example.com/?token=${KEY}` },
      { type: 'memory', id: '01a1fe30-e25b-7576-a0c2-3c4e3646bd03', user_id: 'ana', content: 'an item', item },
    ];
    const { text } = await api.request('POST', '/import', {
      body: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
      headers: { 'content-type': 'application/x-ndjson' },
    });
    expect(jsonLines(text).at(-1)).toMatchObject({ stored: { document: 1 }, refused: { document: 1, memory: 1 } });
    const file = new Database(path.join(folder, 'cairn.sqlite'), { readonly: true });
    expect(file.prepare('SELECT authors FROM document_generations').pluck().all()).toEqual([
      '["[REDACTED:github_key]"]',
    ]);
    file.close();
  });

  test('follows the policy that the tenant has, which only an admin sets', async () => {
    expect((await setPolicy('mark', 'nonsense')).status).toBe(400);
    expect((await api.request('GET', '/settings/privacy')).body).toEqual({ secrets: 'off', personal: 'off' });
    const { secret } = api.engine.control.createKey({ tenantId: 'default', role: 'write' });
    const body = { secrets: 'off', personal: 'off' };
    expect((await api.request('PUT', '/settings/privacy', { body, key: secret })).status).toBe(403);
  });
});

describe('a document', () => {
  test('is redacted as a whole, also where a value lies on the edge of two chunks', async () => {
    const api = await startApi({
      folder: tempFolder(),
      workers: true,
      settings: { OM_EMBEDDINGS: 'none', OM_PII: 'redact', OM_CHUNK_TOKENS: '64', OM_CHUNK_OVERLAP_TOKENS: '8' },
    });
    onTestFinished(() => api.stop());
    const pem = planted.get('private_key')!;
    const text = `${'Some words before it. '.repeat(30)}\n\n${pem}\n\nWrite to ${MAIL}. ${'More words. '.repeat(60)}`;
    const { body } = await api.request('POST', '/memory/ingest', { body: { text, title: `of ${MAIL}` } });
    const id = body['document_id'] as string;
    await vi.waitFor(async () => expect((await api.request('GET', `/documents/${id}`)).body.state).toBe('ready'), {
      timeout: 120_000,
    });
    const content = (await api.request('GET', `/documents/${id}/content`)).text;
    expect(content).toContain('[REDACTED:private_key]');
    expect(content).toContain('[REDACTED:email]');
    const all = `${content}${(await api.request('GET', '/memory/all?l=200')).text}`;
    expect(all).not.toContain(MAIL);
    for (const line of pem.split('\n').slice(1, -1)) expect(all).not.toContain(line.slice(0, 20));
    expect(content.replaceAll(/\s/g, '')).toBe(
      text.replace(pem, '[REDACTED:private_key]').replace(MAIL, '[REDACTED:email]').replaceAll(/\s/g, ''),
    );
  });

  test('shows no sensitive value as its author', async () => {
    const settings = { OM_EMBEDDINGS: 'none', OM_PII: 'redact' };
    const api = await startApi({ folder: tempFolder(), workers: true, settings });
    onTestFinished(() => api.stop());
    const text = `---\nauthor: ${MAIL}\n---\n\nWe meet at noon.\n`;
    const { body } = await api.request('POST', '/memory/ingest', { body: { text, content_type: 'text/markdown' } });
    const id = body['document_id'] as string;
    await vi.waitFor(async () => expect((await api.request('GET', `/documents/${id}`)).body.state).toBe('ready'), {
      timeout: 120_000,
    });
    const shown = await api.request('GET', `/documents/${id}`);
    expect(shown.body['authors']).toEqual(['[REDACTED:email]']);
    expect(shown.text).not.toContain(MAIL);
  });

  test('is marked in each memory that shows a value: a chunk, its headings, the outline and the name of the file', async () => {
    const settings = { OM_EMBEDDINGS: 'none', OM_CHUNK_TOKENS: '64', OM_CHUNK_OVERLAP_TOKENS: '0' };
    const api = await startApi({ folder: tempFolder(), workers: true, settings });
    onTestFinished(() => api.stop());
    const marksOf = async (data: string, file: string) => {
      const body = { data, file_name: file, external_id: 'kept', content_type: 'text/markdown' };
      const { body: reply } = await api.request('POST', '/memory/ingest', { body });
      await vi.waitFor(
        async () => {
          const { body: shown } = await api.request('GET', `/documents/${reply['document_id'] as string}`);
          expect([shown.state, shown['error'] ?? null]).toEqual(['ready', null]);
        },
        { timeout: 120_000 },
      );
      const { items } = (await api.request('GET', '/memory/all?l=200')).body;
      const parts = await Promise.all(items.map(async ({ id }) => (await api.request('GET', `/memory/${id}`)).body));
      return parts.map((part) => {
        const { sensitive: marks = [] } = part['metadata'] as { readonly sensitive?: readonly string[] };
        return { text: `${part['title'] as string}\n${part['content'] as string}`, marks };
      });
    };
    const section = (heading: string, name: string, more = '') =>
      `# ${heading}\n\n${`The ${name} goes up the hill. `.repeat(9)}${more}\n\n`;
    const parts = [
      section('One', 'alpaca', `Write to ${MAIL}.`),
      section(`On ${KEY}`, 'bison'),
      section('Three', 'cat'),
    ];
    const book = parts.join('');
    expect((await marksOf(book, 'book.md')).flatMap(({ marks }) => marks)).toEqual([]);
    await api.request('PUT', '/settings/privacy', { body: { secrets: 'mark', personal: 'mark' } });
    const after = await marksOf(`${book}${section('Four', 'dingo')}`, 'book.md');
    const shown = [MAIL, 'github_pat', 'dingo'].map((word) => after.filter(({ text }) => text.includes(word)).length);
    expect(Math.min(...shown)).toBeGreaterThan(0);
    for (const { text, marks } of after) {
      const kinds = [...(text.includes(MAIL) ? ['email'] : []), ...(text.includes('github_pat') ? ['github_key'] : [])];
      expect([text, marks]).toEqual([text, kinds]);
    }
    const named = await marksOf(book, `${MAIL} of today.md`);
    expect(named.filter(({ marks }) => !marks.includes('email'))).toEqual([]);
    expect(named.flatMap(({ marks }) => marks)).toContain('github_key');
  });

  test('fails if the policy refuses it', async () => {
    const settings = { OM_EMBEDDINGS: 'none', OM_PII: 'secrets=refuse' };
    const api = await startApi({ folder: tempFolder(), workers: true, settings });
    onTestFinished(() => api.stop());
    const { body } = await api.request('POST', '/memory/ingest', { body: { text: `It has ${KEY} in it.` } });
    await vi.waitFor(
      async () => {
        const { body: shown } = await api.request('GET', `/documents/${body['document_id'] as string}`);
        expect(shown['error']).toMatchObject({ code: 'refused_content' });
      },
      { timeout: 120_000 },
    );
  });
});

describe('the analyzer of OM_PII_URL', () => {
  // The default of two seconds may be too short on a machine that does much else.
  const ANALYZED = { OM_EMBEDDINGS: 'none', OM_PII: 'personal=redact', OM_PII_TIMEOUT_MS: '60000' };

  test('adds what patterns do not know; while it is down, adds are refused or go on as the settings say', async () => {
    const asked: unknown[] = [];
    const server = http.createServer((request, response) => {
      request.toArray().then(
        (parts) => {
          const body = JSON.parse(Buffer.concat(parts).toString()) as { text: string };
          asked.push(body);
          // Presidio counts code points.
          const start = [...body.text.slice(0, body.text.indexOf('Ana Silva'))].length;
          response.setHeader('content-type', 'application/json');
          response.end(JSON.stringify([{ entity_type: 'PERSON', start, end: start + 9, score: 0.85 }]));
        },
        () => response.destroy(),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const common = { ...ANALYZED, OM_PII_URL: url };
    const refusing = await startApi({ folder: tempFolder(), settings: common });
    onTestFinished(() => refusing.stop());
    const storing = await startApi({ folder: tempFolder(), settings: { ...common, OM_PII_FAIL: 'store' } });
    onTestFinished(() => storing.stop());

    const { id } = await refusing.add({ content: '👩🏽‍🚀 Ana Silva prefers tabs.' });
    const memory = (await refusing.request('GET', `/memory/${id}`)).body;
    expect(memory['content']).toBe('👩🏽‍🚀 [REDACTED:person] prefers tabs.');
    expect(asked[0]).toMatchObject({ language: 'en', score_threshold: 0.6 });

    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    const refused = await refusing.request('POST', '/memory/add', { body: { content: 'Ana Silva again' } });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
    const kept = await storing.add({ content: `Ana Silva reads ${MAIL}` });
    expect((await storing.request('GET', `/memory/${kept.id}`)).body['content']).toBe(
      'Ana Silva reads [REDACTED:email]',
    );
  });

  test('keeps the lines of an import in their order, however long it looks at some of them', async () => {
    const server = http.createServer((request, response) => {
      request.toArray().then(
        (parts) => {
          const isSlow = Buffer.concat(parts).toString().includes('quince');
          setTimeout(() => response.end('[]'), isSlow ? 150 : 0);
          response.setHeader('content-type', 'application/json');
        },
        () => response.destroy(),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const settings = { ...ANALYZED, OM_PII_URL: url };
    const api = await startApi({ folder: tempFolder(), settings });
    onTestFinished(() => api.stop());
    const idOf = (no: number) => `01a1fe30-e25b-7576-a0c2-${String(no).padStart(12, '0')}`;
    const numbers = Array.from({ length: 130 }, (_, no) => no);
    const lines = [
      // More than one commit takes; all but the last group take no time.
      ...numbers.map((no) => ({ type: 'memory', id: idOf(no), content: no === 127 ? 'A quince.' : '1' })),
      ...numbers.slice(1).map((no) => ({ type: 'link', src: idOf(no), dst: idOf(no - 1), link_type: 'supports' })),
    ];
    const { text } = await api.request('POST', '/import', {
      body: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
      headers: { 'content-type': 'application/x-ndjson' },
    });
    expect(JSON.parse(text.trim().split('\n').at(-1)!)).toMatchObject({
      stored: { memory: 130, link: 129 },
      refused: {},
    });
  });
});
