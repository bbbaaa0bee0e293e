import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readMemories } from '../../../src/engine/store/memories.ts';
import { charactersOf, weightOf } from '../../../src/engine/store/memory-weight.ts';
import { openStore } from '../../../src/engine/store/open-store.ts';
import { contentBytes, textWeights, withinBytes } from '../../../src/engine/store/text-sizes.ts';
import { seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2026, 0, 5);

test('a memory weighs what all of its columns weigh, before it is read and after', async () => {
  const store = openStore(path.join(tempFolder(), 'weights.sqlite'), { role: 'worker', create: true });
  onTestFinished(() => store.close());
  const long = '→'.repeat(1_000);
  const metadata = { list: Array.from({ length: 500 }, () => [{}]), text: '{[,' };
  const seeded = await seedMemories(
    store,
    [
      { content: 'plain' },
      { content: 'titled', title: long },
      { content: 'summed up', gist: long },
      { content: 'tagged', tags: [long] },
      { content: 'of files', files: [long] },
      { content: 'of entities', entities: [long] },
      { content: 'described', metadata },
      { content: `${long} long` },
    ],
    NOW,
  );
  const memoryNos = seeded.map(({ memoryNo }) => memoryNo);
  const memories = readMemories(store, memoryNos, NOW);
  const weights = textWeights(store, memoryNos);
  const plainNo = memoryNos[0]!;
  const [plain, ...others] = memoryNos.map((memoryNo) => weights.get(memoryNo)!) as [number, ...number[]];
  expect(memoryNos.map((memoryNo) => weightOf(memories.get(memoryNo)!))).toEqual([plain, ...others]);
  for (const other of others) expect(other).toBeGreaterThan(plain + 2_900);
  for (const memoryNo of memoryNos.slice(1)) {
    expect(charactersOf(memories.get(memoryNo)!)).toBeGreaterThan(1_000);
    expect(withinBytes(store, [plainNo, memoryNo], 2_000)).toEqual([plainNo]);
  }
  expect(contentBytes(store, [memoryNos[3]!]).get(memoryNos[3]!)).toBeGreaterThan(3_000);
});
