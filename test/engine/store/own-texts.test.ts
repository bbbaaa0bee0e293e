import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../../src/engine/store/open-store.ts';
import { createTextReader } from '../../../src/engine/store/own-texts.ts';
import { seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

test('a text is read behind U+0000, and cut at the same number of characters as others', async () => {
  const store = openStore(path.join(tempFolder(), 'memories.sqlite'), { role: 'worker', create: true });
  onTestFinished(() => store.close());
  const texts = ['Zero \0 and 🚢 ships', 'Plain 0 and 🚢 ships', '🚢🚢🚢🚢🚢🚢🚢🚢\0 ships'];
  const seeded = await seedMemories(
    store,
    texts.map((content) => ({ content })),
    Date.UTC(2025, 0, 1),
  );
  const read = (characters: number) => {
    const found = createTextReader(store)(
      seeded.map(({ memoryNo }) => memoryNo),
      characters,
    );
    return seeded.map(({ memoryNo }) => found.get(memoryNo)?.content);
  };
  expect(read(1_000)).toEqual(texts);
  expect(read(14)).toEqual(['Zero \0 and 🚢 s', 'Plain 0 and 🚢 ', '🚢🚢🚢🚢🚢🚢🚢🚢\0 ship']);
});
