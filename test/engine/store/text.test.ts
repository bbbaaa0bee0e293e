import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CONTEXT_MEMORIES } from '../../../src/engine/store/text.ts';
import { idsWithWord, openTestEngine, START } from '../../support/engine-fixture.ts';

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
