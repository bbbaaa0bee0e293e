import { expect, test } from 'vitest';
import { createRandom } from '../../../../src/engine/random.ts';
import { createWorkBudget, runWithin } from '../../../../src/engine/store/work-budget.ts';
import { matchingText } from '../../../../src/engine/store/word-index/matching-rows.ts';
import { newMemory, openTestEngine } from '../../../support/engine-fixture.ts';

const random = createRandom(7);
const WORDS = ['heron', 'quay', 'grey', 'tide', 'mast'];
const text = (count: number) =>
  Array.from({ length: count }, () => WORDS[Math.floor(WORDS.length * random())]!).join(' ');

test.each(['auto', 'fts5-match'])(
  'a phrase is found in the memories and columns that have it, by %s',
  async (reader) => {
    await using fixture = await openTestEngine({ settings: { OM_WORD_INDEX: reader } });
    const { tenant, store } = fixture;
    const contents = Array.from({ length: 200 }, (_, n) => `${text(12)} n${n}`);
    await tenant.addMemories(contents.map((content) => newMemory({ content, title: text(3) })));
    const rows = fixture.all<{ seq: number; content: string; title: string }>(
      'SELECT seq, content, title FROM memories',
    );
    const asked = rows.filter((_, n) => n % 3 > 0);
    const find = (phrase: string, columns?: ['content'] | ['title']) =>
      store
        .read(() =>
          matchingText(
            store,
            phrase,
            asked.map(({ seq }) => seq),
            columns,
          ),
        )
        .toSorted((a, b) => a - b);
    const having = (phrase: string, of: (row: (typeof rows)[number]) => string[]) =>
      asked.filter((row) => of(row).some((field) => ` ${field} `.includes(` ${phrase} `))).map(({ seq }) => seq);
    for (let round = 0; round < 40; round += 1) {
      const phrase = text(2 + (round % 3));
      expect(find(phrase, ['content'])).toEqual(having(phrase, ({ content }) => [content]));
      expect(find(phrase, ['title'])).toEqual(having(phrase, ({ title }) => [title]));
      expect(find(phrase)).toEqual(having(phrase, ({ content, title }) => [content, title]));
    }
  },
);

test('a phrase spends work once in a snapshot, and is left out where it would take most of the work', async () => {
  await using fixture = await openTestEngine();
  const { tenant, store } = fixture;
  await tenant.addMemories(
    Array.from({ length: 400 }, (_, n) => newMemory({ content: `${text(12)} heron quay n${n}` })),
  );
  const nos = fixture.all<{ seq: number }>('SELECT seq FROM memories').map(({ seq }) => seq);
  const find = () => matchingText(store, 'heron quay', nos).length;
  const within = (bytes: number) => {
    const budget = createWorkBudget({ bytes, deadlineMs: 60_000 });
    const found = runWithin(budget, () => store.read(() => [find(), find()]));
    return { found, spent: bytes - budget.left };
  };
  expect(within(500)).toEqual({ found: [0, 0], spent: 0 });
  const { found, spent } = within(1_000_000);
  expect(found).toEqual([400, 400]);
  expect(spent).toBeGreaterThan(400);
  expect(spent).toBeLessThan(50_000);
  // The rows stay as long as nothing is committed.
  expect(within(500)).toEqual({ found: [400, 400], spent: 0 });
});
