import path from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRandom } from '../../../../src/engine/random.ts';
import { openStore } from '../../../../src/engine/store/open-store.ts';
import { CONTEXT_MEMORIES } from '../../../../src/engine/store/session-context.ts';
import { deleteText, putText } from '../../../../src/engine/store/word-index/memory-text.ts';
import { readLevels } from '../../../../src/engine/store/word-index/structure.ts';
import { idsWithWord, openTestEngine, START } from '../../../support/engine-fixture.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

type Change =
  | { readonly kind: 'add'; readonly session: string; readonly minute: number }
  | { readonly kind: 'say' | 'move' | 'delete'; readonly which: number; readonly minute: number };

const minute = fc.nat(20);
const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('add'), session: fc.constantFrom('one', 'two', ''), minute }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom('say', 'move', 'delete'), which: fc.nat(50), minute }),
  },
);

interface Said {
  readonly id: string;
  readonly order: number;
  readonly session: string;
  word: string;
  eventTime: number;
}

test('whatever is added, changed, moved or deleted, a memory has the words of the two before it as its context', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 4, maxLength: 24 }), async (changes) => {
      await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
      const { tenant } = fixture;
      const timeOf = (minutes: number) => START - 3_600_000 + minutes * 60_000;
      const words: string[] = [];
      const newWord = () => {
        words.push(`word${String.fromCharCode(97 + Math.floor(words.length / 26), 97 + (words.length % 26))}`);
        return words.at(-1)!;
      };
      let said: Said[] = [];
      for (const [order, step] of changes.entries()) {
        if (step.kind === 'add') {
          const word = newWord();
          const eventTime = timeOf(step.minute);
          const { id } = await fixture.add({ content: word, sessionId: step.session, eventTime });
          said.push({ id, order, session: step.session, word, eventTime });
          continue;
        }
        const memory = said[step.which % Math.max(1, said.length)];
        if (memory === undefined) continue;
        if (step.kind === 'delete') {
          await tenant.deleteMemory(memory.id);
          said = said.filter((other) => other !== memory);
        } else if (step.kind === 'say') {
          memory.word = newWord();
          await tenant.patchMemory(memory.id, { content: memory.word });
        } else {
          memory.eventTime = timeOf(step.minute);
          await tenant.patchMemory(memory.id, { eventTime: memory.eventTime });
        }
      }

      const expected = new Map(words.map((word): [string, string[]] => [word, []]));
      for (const { session, id } of said) {
        if (session === '') continue;
        const turns = said
          .filter((other) => other.session === session)
          .sort((a, b) => a.eventTime - b.eventTime || a.order - b.order);
        const place = turns.findIndex((turn) => turn.id === id);
        for (const { word } of turns.slice(Math.max(0, place - CONTEXT_MEMORIES), place)) expected.get(word)!.push(id);
      }
      for (const [word, ids] of expected) {
        expect(idsWithWord(fixture, word, 'context').sort(), word).toEqual(ids.sort());
        const speakers = said.filter((memory) => memory.word === word).map(({ id }) => id);
        expect(idsWithWord(fixture, word, 'content'), word).toEqual(speakers);
      }
    }),
    { numRuns: 15 },
  );
});

test('each commit merges as much of the word index as it wrote, so that none has to make up for many', () => {
  const store = openStore(path.join(tempFolder(), 'merges.sqlite'), { role: 'worker', create: true });
  // Small pages, so that few rows take many.
  store.db.exec(`INSERT INTO memory_text (memory_text, rank) VALUES ('pgsz', 256)`);
  const random = createRandom(3);
  const word = () => `w${Math.floor(3_000 ** random())}`;
  const none = { title: '', gist: '', entities: [], tags: [], files: [], context: '' };
  const pagesWritten: number[] = [];
  let mostOfALevel = 0;
  for (let commit = 0; commit < 150; commit += 1) {
    const before = store.prepare('SELECT total_changes()').pluck().get() as number;
    store.write(() => {
      for (let row = 1; row <= 20; row += 1) {
        putText(store, { ...none, memoryNo: 20 * commit + row, content: Array.from({ length: 20 }, word).join(' ') });
      }
    });
    pagesWritten.push((store.prepare('SELECT total_changes()').pluck().get() as number) - before);
    mostOfALevel = Math.max(mostOfALevel, ...readLevels(store)!.map(({ length }) => length));
  }
  // Not merged, a level would have sixteen before FTS5 merges all of them in one commit.
  expect(mostOfALevel).toBeLessThanOrEqual(8);
  const settled = pagesWritten.slice(50).sort((a, b) => a - b);
  // FTS5's own steps make the longest of these nineteen times the usual one.
  expect(settled.at(-1)! / settled[settled.length >> 1]!).toBeLessThan(6);
  store.close();
});

test('a commit of several segments merges for each of them, and one that only deletes for none', () => {
  const store = openStore(path.join(tempFolder(), 'merges.sqlite'), { role: 'worker', create: true });
  // Small pages, and little held back before a segment is written, so that few rows make several.
  store.db.exec(`INSERT INTO memory_text (memory_text, rank) VALUES ('pgsz', 256), ('hashsize', 32768)`);
  const random = createRandom(3);
  const word = () => `w${Math.floor(3_000 ** random())}`;
  const none = { title: '', gist: '', entities: [], tags: [], files: [], context: '' };
  const levels = () =>
    readLevels(store)!.map((level) => level.map(({ id, firstPage, lastPage }) => [id, firstPage, lastPage]));
  let mostSegments = 0;
  for (let commit = 0; commit < 60; commit += 1) {
    store.write(() => {
      for (let row = 1; row <= 40; row += 1) {
        putText(store, { ...none, memoryNo: 40 * commit + row, content: Array.from({ length: 40 }, word).join(' ') });
      }
      // Several are written before the commit, or this tests nothing.
      if (commit === 0) expect(levels().flat().length).toBeGreaterThan(2);
    });
    mostSegments = Math.max(mostSegments, levels().flat().length);
  }
  // 28 where only the last of a commit is merged for.
  expect(mostSegments).toBeLessThanOrEqual(16);
  const before = levels();
  for (let memoryNo = 1; memoryNo <= 40; memoryNo += 1) store.write(() => deleteText(store, memoryNo));
  expect(levels()).toEqual(before);
  store.close();
});
