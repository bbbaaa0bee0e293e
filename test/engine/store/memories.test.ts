import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readMemories } from '../../../src/engine/store/memories.ts';
import { openStore } from '../../../src/engine/store/open-store.ts';
import { seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2025, 0, 1);

/**
 * An object literal with a getter kept the row behind it, and all of its text, until the next full collection: 14 KB a
 * query.
 */
test('a memory is plain data, without a getter that would hold its row', async () => {
  const store = openStore(path.join(tempFolder(), 'memories.sqlite'), { role: 'worker', create: true });
  onTestFinished(() => store.close());
  const [seeded] = await seedMemories(store, [{ content: 'Marie Curie worked in Paris.', entities: ['Radium'] }], NOW);
  const memory = readMemories(store, [seeded!.memoryNo], NOW).get(seeded!.memoryNo)!;
  const getters = Object.entries(Object.getOwnPropertyDescriptors(memory)).filter(([, { get }]) => get !== undefined);
  expect(getters).toEqual([]);
  expect(memory).toMatchObject({ gist: '', entities: ['Radium'] });
});
