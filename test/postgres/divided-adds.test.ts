/** Adds of long texts and of many different words to PostgreSQL, each of which is a row of a table there. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AddOptions } from '../../src/engine/types.ts';
import { newMemory, openTestEngine, type TestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

/** Number of different words of each memory, and number of memories. */
const [WORDS, MEMORIES] = [8_000, 5];

/** A word of letters for each number: other ones are identifiers, too, and these are further terms. */
const spelt = (number: number) => [...String(number)].map((digit) => 'bcdfghjklm'[Number(digit)]).join('');

const server = await startPostgres();
describe.skipIf(server === undefined)('an add of many different words to PostgreSQL', () => {
  let fixture: TestEngine;
  let url: string;
  beforeAll(async () => {
    url = await server!.createSchema();
    fixture = await openTestEngine({ settings: { OM_DATABASE_URL: url } });
  });
  afterAll(async () => {
    await fixture?.close();
    server?.stop();
  });

  const itemsOf = (name: string, words: (memory: number, word: number) => string) =>
    Array.from({ length: MEMORIES }, (_, memory) => {
      const text = Array.from({ length: WORDS }, (_, word) => words(memory, word)).join(' ');
      return newMemory({ content: `${name} ${spelt(memory)} ${text}` });
    });

  /** Returns the numbers of memories with a word that each commit stored. */
  async function commitsWith(name: string) {
    const rows = await server!.read(
      url,
      `SELECT count(*)::int AS rows FROM word_rows WHERE terms LIKE '${name} %' OR terms LIKE '% ${name} %'
       GROUP BY xmin::text ORDER BY min(id)`,
    );
    return rows.map((row) => (row as { rows: number }).rows);
  }

  async function commitsOf(name: string, words: (memory: number, word: number) => string, options?: AddOptions) {
    const items = itemsOf(name, words);
    const { outcomes, taken } = await fixture.tenant.addMemories(items, options);
    expect([outcomes.map(({ kind }) => kind), taken]).toEqual([items.map(() => 'accepted'), undefined]);
    return commitsWith(name);
  }

  test('goes on in another commit after 20,000 of them', async () => {
    const different = (memory: number, word: number) => spelt(10_000 * (memory + 1) + word);
    expect(await commitsOf('otter', different)).toEqual([3, 2]);
    expect(await commitsOf('heron', (_, word) => spelt(word % 4_000))).toEqual([MEMORIES]);
    expect(
      await commitsOf('badger', (memory, word) => spelt(10_000 * (memory + 10) + word), { allOrNothing: true }),
    ).toEqual([MEMORIES]);
  });

  test('goes on in another commit after a long text of few words', async () => {
    expect(await commitsOf('wren', (_, word) => 'longest '.repeat(3) + spelt(word % 9))).toEqual([3, 2]);
  });

  test('shares no further commit with other adds after 20,000 of them', async () => {
    const items = itemsOf('plover', (memory, word) => spelt(10_000 * (memory + 1) + word));
    const replies = await Promise.all(items.map((item) => fixture.tenant.addMemories([item])));
    expect(replies.map(({ outcomes }) => outcomes[0]!.kind)).toEqual(items.map(() => 'accepted'));
    expect(await commitsWith('plover')).toEqual([3, 2]);
  });
});
