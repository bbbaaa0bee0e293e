import { describe, expect, test } from 'vitest';
import { CHANCE_SCORE } from '../../src/engine/retrieve/calibrate.ts';
import type { Hit } from '../../src/engine/types.ts';
import { openTestEngine, type TestEngine } from '../support/engine-fixture.ts';

/**
 * What somebody expects who has just begun: a handful of memories, and questions as people ask them. Each memory lies
 * alone, among two others, and among nine; each is asked for before its vector is there and after. It comes back first,
 * and nothing that has nothing to do with the question comes with it.
 */
const ASKED: readonly (readonly [content: string, queries: readonly string[]])[] = [
  ['I work as a nurse at St. Mary hospital', ['where do I work?', 'which hospital employs me', 'nurse']],
  ['My dog is called Rex and he is a beagle', ['what breed is my dog', 'What does the dog eat', 'beagle']],
  ['My favourite colour is teal', ['favourite color', 'what is my favourite color', 'favorite colour']],
  ['I like green tea', ['what do I like?', 'drink tea']],
  ['明天下午三点和王小明开会', ['什么时候开会']],
  ['我喜欢吃汉堡', ['汉堡']],
  ['My sister Anna lives in Oslo', ['what is my sister called']],
  ['I have an allergy to peanuts', ['can I eat a peanut butter sandwich?', 'peanuts']],
  ['We use libfoo 2.6.6 in the importer', ['which version of libfoo do we use?', 'libfoo']],
  ['Call mom tomorrow at 5pm', ['who do I need to call?']],
  ['The lease ends in May', ['May', 'lease']],
  ['Set MAX_UPLOAD_SIZE=50MB in .env.production', ['50MB', 'upload size limit', 'upload']],
  ['TODO refactor parseInvoice in packages/billing/parse-invoice.py', ['parse invoice', 'where do we parse invoices?']],
  ['mergeCart() throws CartMergeConflictError', ['cart merge conflict', 'conflict', 'merge cart']],
  ['export async function hashPassword(plain: string) {', ['password', 'hash password', 'how do we hash passwords?']],
  ['HTTPServer listens on :8443; XMLHttpRequest is legacy', ['HTTP server', '8443', 'xmlhttprequest']],
  ['Pin the importer to v2.6.6', ['2.6', 'v2.6.6', 'version 2.6.6']],
  ['The bug is in src/auth/user.ts', ['src/auth/user.ts', 'user.ts']],
  ['The Zanzibar merger closes on Friday, says Quillon', ['Zanzibar merger', 'Quillon']],
];

/** What only the vectors, or the entities that are found with them, lead to. */
const ASKED_LATER: typeof ASKED = [
  ['We run on Kubernetes with PostgreSQL', ['postgres', 'kubernetes']],
  ['const name = getUserName(session)', ['username', 'user name']],
];

const UNRELATED = [
  'quantum chromodynamics',
  'recipe for lasagne',
  'florbnax quuxly zyzzyva',
  'hello',
  'good morning, how are you?',
  'who won the world cup in 1998?',
  'capital of Mongolia',
  'symptoms of malaria',
  'the weather on Mars',
  '量子力学',
];

const BESIDE = [
  'We water the ferns on Sundays',
  'The train to Graz leaves at nine',
  'Rust compiles slower than Go',
  'My bicycle has a flat tyre',
  'Our standup is at ten',
  'The museum closes on Mondays',
  'Ben plays the cello in a quartet',
  'The window cleaner comes twice a year',
  'She knits socks every winter',
];

/** What all the queries bring, by query. */
async function askAll(
  { tenant }: TestEngine,
  queries: readonly string[],
): Promise<ReadonlyMap<string, readonly Hit[]>> {
  const found = new Map<string, readonly Hit[]>();
  for (const query of queries) {
    const { hits } = await tenant.query({ query, k: 10, filter: { userIds: ['ana'] }, reinforce: false });
    found.set(query, hits);
  }
  return found;
}

const contents = (found: ReadonlyMap<string, readonly Hit[]>) =>
  new Map([...found].map(([query, hits]) => [query, hits.map(({ memory }) => memory.content)]));

const all = <T>(keys: readonly string[], value: T) => new Map(keys.map((key) => [key, value]));

describe.each([1, 3, 10])('in a store of %d', (size) => {
  /** Stored a moment ago. */
  async function store(content: string): Promise<TestEngine> {
    const fixture = await openTestEngine();
    for (const text of [content, ...BESIDE.slice(0, size - 1)]) await fixture.add({ content: text, userId: 'ana' });
    return fixture;
  }

  test.each(ASKED)('%s', async (content, queries) => {
    await using fixture = await store(content);
    expect(contents(await askAll(fixture, queries)), 'before the vectors').toEqual(all(queries, [content]));
    await fixture.drain();
    const found = await askAll(fixture, queries);
    expect(contents(found), 'after').toEqual(all(queries, [content]));
    for (const [hit] of found.values()) expect(hit!.score).toBeGreaterThan(CHANCE_SCORE);
  });

  test.each(ASKED_LATER)('later: %s', async (content, queries) => {
    await using fixture = await store(content);
    await fixture.drain();
    expect(contents(await askAll(fixture, queries))).toEqual(all(queries, [content]));
  });

  test('what has nothing to do with it brings nothing', async () => {
    await using fixture = await store('I work as a nurse at St. Mary hospital');
    expect(contents(await askAll(fixture, UNRELATED)), 'before the vectors').toEqual(all(UNRELATED, []));
    await fixture.drain();
    expect(contents(await askAll(fixture, UNRELATED)), 'after').toEqual(all(UNRELATED, []));
  });
});

test('every word of a query makes a hit that is clearly over the floor, by its stem, its other spelling or within a name', async () => {
  for (const [content, query] of [
    ['I work as a nurse', 'where do I work?'],
    ['My favourite colour is teal', 'favorite color'],
    ['We organise meetups', 'organizing a meetup'],
    ['const hash = hashPassword(plain)', 'password'],
    ['明天下午三点和王小明开会', '什么时候开会'],
  ] as const) {
    await using fixture = await openTestEngine();
    await fixture.add({ content, userId: 'ana' });
    await fixture.drain();
    const [hit] = (await askAll(fixture, [query])).get(query)!;
    expect(hit?.score, query).toBeGreaterThanOrEqual(0.5);
  }
});

test('a memory that somebody linked to the right one may come with it', async () => {
  await using fixture = await openTestEngine();
  const { id: right } = await fixture.add({ content: 'The Zanzibar merger closes on Friday', userId: 'ana' });
  const { id: linked } = await fixture.add({ content: 'Champagne is in the cellar', userId: 'ana' });
  await fixture.add({ content: 'We water the ferns on Sundays', userId: 'ana' });
  await fixture.drain();
  await fixture.tenant.linkMemories({ src: right, dst: linked, type: 'supports' });
  const hits = (await askAll(fixture, ['Zanzibar merger'])).get('Zanzibar merger')!;
  expect(hits.map(({ memory }) => memory.id)).toEqual([right, linked]);
});
