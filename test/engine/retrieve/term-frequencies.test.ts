import fc from 'fast-check';
import { expect, test } from 'vitest';
import { memoryCount, termFrequencies } from '../../../src/engine/retrieve/term-frequencies.ts';
import { openStore } from '../../../src/engine/store/open-store.ts';
import { newMemory, openTestEngine } from '../../support/engine-fixture.ts';

const WORDS = ['apple', 'pear', 'plum', 'fig'];

/** What happens to the file between two looks. */
const change = fc.oneof(
  fc.record({
    kind: fc.constant('add' as const),
    words: fc.subarray(WORDS, { minLength: 1 }),
    session: fc.constantFrom('', 's1'),
    time: fc.integer({ min: 1, max: 50 }),
  }),
  fc.record({ kind: fc.constant('patch' as const), at: fc.nat(), words: fc.subarray(WORDS, { minLength: 1 }) }),
  fc.record({ kind: fc.constant('delete' as const), at: fc.nat() }),
  fc.constant({ kind: 'look' as const }),
);

test('what is kept between looks is what a count of everything says, whatever another connection wrote', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 25 }), async (changes) => {
      await using fixture = await openTestEngine();
      const { tenant, file } = fixture;
      const reader = openStore(file, { role: 'reader' });
      const fresh = () => {
        const other = openStore(file, { role: 'reader' });
        const counted = other.read(() => [termFrequencies(other, WORDS), memoryCount(other)]);
        other.close();
        return counted;
      };
      const ids: string[] = [];
      let made = 0;
      for (const change of changes) {
        const id = 'at' in change ? ids[change.at % Math.max(1, ids.length)] : undefined;
        if (change.kind === 'add') {
          const content = `${change.words.join(' ')} ${made++}`;
          const memory = newMemory({ content, sessionId: change.session, eventTime: change.time });
          const { outcomes } = await tenant.addMemories([memory]);
          if (outcomes[0]?.kind === 'accepted') ids.push(outcomes[0].id);
        } else if (change.kind === 'patch' && id !== undefined) {
          await tenant.patchMemory(id, { content: `${change.words.join(' ')} anew ${made++}` });
        } else if (change.kind === 'delete' && id !== undefined) {
          await tenant.deleteMemory(id);
          ids.splice(ids.indexOf(id), 1);
        } else if (change.kind === 'look') {
          expect(reader.read(() => [termFrequencies(reader, WORDS), memoryCount(reader)])).toEqual(fresh());
        }
      }
      expect(reader.read(() => [termFrequencies(reader, WORDS), memoryCount(reader)])).toEqual(fresh());
      reader.close();
    }),
    { numRuns: 15 },
  );
});
