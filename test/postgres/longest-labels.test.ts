/** The longest paths and addresses that a request may give fit into the indexes of PostgreSQL. */
import { randomBytes, randomInt } from 'node:crypto';
import { afterAll, describe, expect, test } from 'vitest';
import { ingestUrlSchema } from '../../src/api/schemas/documents.ts';
import { itemSchema } from '../../src/api/schemas/items.ts';
import { addSchema, patchSchema } from '../../src/api/schemas/memories.ts';
import { LINE_SCHEMAS } from '../../src/api/schemas/portable.ts';
import { countLongAddresses } from '../../src/engine/store/postgres/moved-file.ts';
import { newMemory, openTestEngine } from '../support/engine-fixture.ts';
import { newDocument } from '../support/new-document.ts';
import { startPostgres } from '../support/postgres.ts';

/** Makes a text of Chinese characters, of three bytes each, which no database compresses. */
const chinese = (characters: number) =>
  Array.from({ length: characters }, () => String.fromCodePoint(0x4e00 + randomInt(20_000))).join('');
const longest = chinese(853);
const page = (characters: number) =>
  `https://example.com/${randomBytes(2_000).toString('base64url')}`.slice(0, characters);

test.each([
  ['a new memory', addSchema, { content: 'x' }],
  ['a changed memory', patchSchema, {}],
  ['an item', itemSchema, { key: 'k', value: 1 }],
  ['a line of an export', LINE_SCHEMAS.memory, { type: 'memory', id: crypto.randomUUID(), content: 'x' }],
])('the files of %s have a greatest length in bytes', (_, schema, fields) => {
  const isValid = (file: string) => schema.safeParse({ ...fields, files: [file] }).success;
  expect([longest, chinese(854), 'a'.repeat(1_024)].map(isValid)).toEqual([true, false, true]);
});

test('the address of a page has a greatest length as it is stored', () => {
  const isValid = (url: string) => ingestUrlSchema.safeParse({ url }).success;
  const urls = [page(2_048), page(2_049), `https://example.com/${chinese(200)}`, `https://example.com/${chinese(300)}`];
  expect(urls.map(isValid)).toEqual([true, false, true, false]);
});

test('pages that an earlier version has accepted with longer ones are counted before a move', async () => {
  await using fixture = await openTestEngine();
  const { store } = fixture;
  await fixture.tenant.addDocument(newDocument({ kind: 'url', url: page(2_048) }, { userId: 'ana' }));
  expect(countLongAddresses(store)).toBe(0);
  store.write(() => store.prepare('UPDATE documents SET user_id = ?').run(chinese(185)));
  expect(countLongAddresses(store)).toBe(1);
});

const server = await startPostgres();
describe.skipIf(server === undefined)('in PostgreSQL', () => {
  afterAll(() => server?.stop());

  test('the longest files and addresses are stored', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await server!.createSchema() } });
    const { tenant } = fixture;
    const { outcomes } = await tenant.addMemories([newMemory({ content: 'The ferry.', files: [longest] })]);
    expect(outcomes).toMatchObject([{ kind: 'accepted' }]);
    const add = (userId: string, externalId: string | null) =>
      tenant.addDocument(newDocument({ kind: 'url', url: page(2_048) }, { userId, externalId }));
    const fits = `${chinese(184)}`;
    for (const [userId, externalId] of [
      [fits, null],
      [chinese(256), chinese(256)],
    ] as const)
      expect(await add(userId, externalId)).toMatchObject({ outcome: 'accepted' });
    await expect(add(`${fits}a`, null)).rejects.toThrow('url: with user_id it has 2601 bytes, and at most 2600');
  });
});
