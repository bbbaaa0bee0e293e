/** Documents of an import have no longer headings, authors and warnings than a parser makes, and lists have slices. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Tenant } from '../../src/engine/engine.ts';
import { jsonLines } from '../support/portable.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const NDJSON = { 'content-type': 'application/x-ndjson' };
const CHUNKS = 100;
const TIME = '2026-03-01T00:00:00.000Z';
/** The longest headings that an import takes: 25 kB as JSON. */
const HEADINGS = Array.from({ length: 16 }, (_, level) => `${level} `.padEnd(512, '→'));
/** The most authors that an import takes: 600 kB as JSON. */
const AUTHORS = Array.from({ length: 100 }, (_, no) => `${no} `.padEnd(4_096, '→'));

let api: TestApi;
let tenant: Tenant;

beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  tenant = await api.engine.tenant('default');
  const id = idOf(1);
  const parts = Array.from({ length: CHUNKS + 1 }, (_, no) => part(id, no - 1));
  expect(await importLines([document(id, { chunks: CHUNKS }), ...parts])).toMatchObject({ refused: {} });
});
afterAll(async () => {
  await api.stop();
});

const idOf = (no: number) => `01a1ff55-0000-7000-8000-${String(no).padStart(12, '0')}`;

const document = (id: string, fields: object) => ({
  ...{ type: 'document', id, user_id: 'ana', source: 'upload', chunks: 0, created_at: TIME, updated_at: TIME },
  ...{ read_at: TIME, shown_at: TIME, ready_at: TIME, ...fields },
});

/** The chunk `index` of a document; -1 for the memory of the whole document. */
const part = (id: string, index: number, headings: readonly string[] = HEADINGS) => ({
  ...{ type: 'memory', id: idOf(1_000 + index), user_id: 'ana', content: `epsilon ${index}` },
  document: { id, index, start_offset: Math.max(0, index), end_offset: index + 1, heading_path: headings },
});

async function importLines(lines: readonly object[]) {
  const body = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  return jsonLines((await api.request('POST', '/import', { body, headers: NDJSON })).text).at(-1);
}

test('chunks are read in slices of 256 KiB and sent in pieces, with the `next` of a page', async () => {
  const sizes: number[] = [];
  for await (const slice of tenant.streamDocumentChunks(idOf(1), { limit: 1_000, offset: 0 }))
    sizes.push(Buffer.byteLength(JSON.stringify(slice)));
  expect(sizes.length).toBeGreaterThan(5);
  expect(Math.max(...sizes)).toBeLessThan(300 * 1024);

  const page = await api.request('GET', `/documents/${idOf(1)}/chunks?l=60`);
  expect(page.headers.get('transfer-encoding')).toBe('chunked');
  expect(page.body).toMatchObject({ id: idOf(1), total: CHUNKS, next: 60 });
  const rest = await api.request('GET', `/documents/${idOf(1)}/chunks?l=60&u=60`);
  expect(rest.body).not.toHaveProperty('next');
  const items = [...page.body.items, ...rest.body.items] as unknown as { readonly chunk: number; memory_id: string }[];
  expect(items.map(({ chunk }) => chunk)).toEqual(Array.from({ length: CHUNKS }, (_, no) => no));
  expect(items[7]).toMatchObject({ memory_id: idOf(1_007), heading_path: HEADINGS, start_offset: 7 });
  expect((await api.request('GET', `/documents/${idOf(1)}/chunks?u=${CHUNKS}`)).body.items).toEqual([]);
});

test('an answer of chunks with long headings is sent in pieces', async () => {
  const query = { query: 'epsilon', user_id: 'ana', k: 50, min_score: 0, collapse_similar: false, per_document: 0 };
  const { body, headers } = await api.request('POST', '/memory/query', { body: query });
  expect(body.matches).toHaveLength(50);
  expect(headers.get('transfer-encoding')).toBe('chunked');
});

test('documents are listed in slices that end where they become large', async () => {
  const lines = Array.from({ length: 12 }, (_, no) => {
    const warnings = [{ code: 'page_unreadable', message: `page ${no}` }];
    return [document(idOf(100 + no), { user_id: 'bea', authors: AUTHORS, warnings }), empty(idOf(100 + no), no)];
  });
  expect(await importLines(lines.flat())).toMatchObject({ stored: { document: 12 }, refused: {} });
  const { slices, total } = await tenant.streamDocuments({ userIds: ['bea'] }, { limit: 100, offset: 0 });
  const listed: string[] = [];
  for await (const slice of slices) {
    expect(slice.length).toBeLessThan(3);
    listed.push(...slice.map(({ id }) => id));
  }
  expect([total, listed]).toEqual([12, lines.map(([line]) => line!.id).reverse()]);

  function empty(id: string, no: number) {
    return { ...part(id, -1, []), id: idOf(5_000 + no), user_id: 'bea' };
  }
});

test.each([
  ['a heading', { headings: ['x'.repeat(513)] }],
  ['the number of headings', { headings: Array.from({ length: 17 }, () => 'x') }],
  ['an author', { authors: ['x'.repeat(4_097)] }],
  ['the number of authors', { authors: Array.from({ length: 101 }, () => 'x') }],
  ['the message of a warning', { warnings: [{ code: 'page_unreadable', message: 'x'.repeat(4_097) }] }],
  [
    'the number of warnings',
    { warnings: Array.from({ length: 101 }, () => ({ code: 'page_unreadable', message: '' })) },
  ],
  ['the title of a document', { title: 'x'.repeat(4_097) }],
  ['the given title of a document', { given_title: 'x'.repeat(4_097) }],
])('%s that no parser makes is refused in an import', async (_, { headings, ...fields }: Record<string, unknown>) => {
  const line = headings === undefined ? document(idOf(900), fields) : part(idOf(1), 0, headings as string[]);
  // Lines that do not agree with their schema are counted as `line`.
  expect(await importLines([line])).toMatchObject({ stored: {}, refused: { line: 1 } });
});

test('a list of chunks breaks off where the document is deleted meanwhile', async () => {
  const slices = tenant.streamDocumentChunks(idOf(1), { limit: 1_000, offset: 0 })[Symbol.asyncIterator]();
  expect((await slices.next()).value).not.toHaveLength(CHUNKS);
  expect((await api.request('DELETE', `/documents/${idOf(1)}`)).status).toBe(200);
  await expect(slices.next()).rejects.toMatchObject({ code: 'not_found' });
});
