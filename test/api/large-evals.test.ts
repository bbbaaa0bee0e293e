import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { hashOf, hashOfItems } from '../../src/engine/evals/questions.ts';
import { EVAL_LIMITS } from '../../src/engine/types.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { fileTest } from '../support/store-settings.ts';

/** Evaluation sets of megabytes: no step of a request handles a whole one as JSON. */

/** Greatest length of the JSON that one step makes; a set has 40 times as much. */
const MOST_CHARACTERS = 64 * 1024;

const items = Array.from({ length: 100 }, (_, no) => ({
  query: `question ${no} ${'é'.repeat(8_000)}`,
  ...(no % 2 === 0 ? { userId: 'ana' } : {}),
  expected: Array.from({ length: 36 }, (_, at) => `entry ${at} ${'"x'.repeat(230)}`),
}));

let api: TestApi;
let from: string;

beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  const tenant = await api.engine.tenant('default');
  for (const name of ['one', 'two']) await tenant.putEval({ name, guard: false, items });
  from = (await api.request('GET', '/export')).text;
});
afterAll(() => api.stop());

/** Returns the length of the longest JSON that is made while `work` runs. */
async function longestJson(work: () => Promise<unknown>): Promise<number> {
  const making = vi.spyOn(JSON, 'stringify');
  onTestFinished(() => making.mockRestore());
  await work();
  const lengths = making.mock.results.map(({ value }) => (typeof value === 'string' ? value.length : 0));
  making.mockRestore();
  return Math.max(0, ...lengths);
}

/** Imports lines, and returns the summary. */
const imported = async (server: TestApi, body: string) => {
  const headers = { 'content-type': 'application/x-ndjson' };
  const { text } = await server.request('POST', '/import', { body, headers });
  return JSON.parse(text.trimEnd().split('\n').at(-1)!) as object;
};

test('a set is sent in pieces, as it was stored', async () => {
  const { body, headers } = await api.request('GET', '/evals/one');
  expect(headers.get('transfer-encoding')).toBe('chunked');
  expect(body.items).toEqual(items.map(({ userId, ...item }) => (userId ? { ...item, user_id: userId } : item)));
  expect(await longestJson(() => api.request('GET', '/evals/one'))).toBeLessThan(MOST_CHARACTERS);
});

test('an export makes sets item by item, and sends them in pieces', async () => {
  const tenant = await api.engine.tenant('default');
  const configuration = (async function* () {
    for (const name of ['one', 'two']) yield { type: 'eval_set', ...(await tenant.getEval(name)) } as const;
  })();
  const pieces: number[] = [];
  for await (const piece of tenant.exportLines({ filter: {}, configuration })) pieces.push(piece.length);
  expect(pieces.length).toBeGreaterThan(40);
  expect(Math.max(...pieces)).toBeLessThan(3 * MOST_CHARACTERS);
  expect(await longestJson(() => api.request('GET', '/export'))).toBeLessThan(MOST_CHARACTERS);
});

test('an import compares and stores sets item by item', async () => {
  const known = { complete: true, checksum: 'match', known: { eval_set: 2 }, kept: {}, refused: {} };
  expect(await imported(api, from)).toMatchObject(known);
  const changed = from.replaceAll('question 99', 'question of another');
  expect(await imported(api, changed)).toMatchObject({ known: {}, kept: { eval_set: 2 } });
  expect(await longestJson(() => imported(api, changed))).toBeLessThan(MOST_CHARACTERS);

  const other = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  onTestFinished(() => other.stop());
  expect(await longestJson(() => imported(other, from))).toBeLessThan(MOST_CHARACTERS);
  const tenant = await other.engine.tenant('default');
  expect(await tenant.getEval('two')).toEqual({ name: 'two', guard: false, items });
});

test('the hash of the items of a set is that of their list', async () => {
  expect(await hashOfItems(items)).toBe(hashOf(items));
  expect(await hashOfItems([])).toBe(hashOf([]));
});

fileTest('the bytes of a set, and of all sets of a tenant, are bounded', async () => {
  await using fixture = await openTestEngine();
  const put = (name: string, bytes: number) =>
    fixture.tenant.putEval({ name, guard: false, items: [{ query: 'x'.repeat(bytes), expected: [] }] });
  await expect(put('large', EVAL_LIMITS.setBytes)).rejects.toMatchObject({
    code: 'invalid',
    message: 'items: a set has at most 4194304 bytes of JSON: divide it',
  });
  const most = EVAL_LIMITS.setBytes - 100;
  await put('first', 10);
  const database = new Database(fixture.file);
  const fill = `INSERT INTO eval_items SELECT set_no, 1, NULL, hex(zeroblob(?)) FROM eval_sets`;
  database.prepare(fill).run((EVAL_LIMITS.bytes - most) / 2);
  database.close();
  await expect(put('more', most)).rejects.toMatchObject({
    code: 'conflict',
    message: 'the evaluation sets of a tenant have at most 67108864 bytes together: delete one first',
  });
  expect(await put('first', 10)).toMatchObject({ items: 1 });
  expect(await put('more', most)).toMatchObject({ items: 1 });
  expect(await fixture.tenant.listEvals()).toHaveLength(2);
});
