import { expect, test } from 'vitest';
import { livingTexts } from '../../../src/engine/store/living-texts.ts';
import { tellingWords } from '../../../src/engine/text/erased-words.ts';
import { seedMemories } from '../../support/seed-store.ts';
import { openTemporaryStore } from '../../support/temporary-store.ts';

test('words that stand behind an escape in stored JSON are living, as they are and as the file holds them', async () => {
  using store = openTemporaryStore();
  await seedMemories(store, [{ content: 'None', metadata: { people: 'They:\nZanzibarite\tQuill\\feather' } }], 1_000);
  const words = new Set([...livingTexts(store)].flatMap((text) => [...tellingWords(text)]));
  expect([...words]).toEqual(expect.arrayContaining(['zanzibarite', 'quill', 'nzanzibarite', 'tquill']));
});
