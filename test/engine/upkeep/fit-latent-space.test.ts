import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import { createRandom } from '../../../src/engine/random.ts';
import { findLatentFit, readLatentSpace } from '../../../src/engine/store/latent-spaces.ts';
import { deleteMemoryRow } from '../../../src/engine/store/memories.ts';
import { openStore, type Store } from '../../../src/engine/store/open-store.ts';
import { type LatentSpace, placeIn, stemHash } from '../../../src/engine/text/latent-space.ts';
import { stemOf } from '../../../src/engine/text/stem-finder.ts';
import { countWords } from '../../../src/engine/text/word-counts.ts';
import { fitLatentSpace, type LatentContext } from '../../../src/engine/upkeep/fit-latent-space.ts';
import { seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2025, 0, 1);
const VOWELS = 'aeiou';
/** 80 invented words for each topic, none of which any other topic has. */
const wordsAbout = (topic: string) =>
  Array.from(
    { length: 80 },
    (_, place) => `${topic}${VOWELS[place % 5]}k${VOWELS[Math.floor(place / 5) % 5]}${place}m`,
  );
const TOPICS = ['harb', 'pol', 'stug'].map(wordsAbout);

/** Texts of 70 words, each with a few of the words of its topic only. */
function longTexts(count: number, words = 70): string[] {
  const random = createRandom(3);
  return Array.from({ length: count }, (_, place) => {
    const topic = TOPICS[place % TOPICS.length]!;
    return Array.from({ length: words }, () => topic[Math.floor(random() * topic.length)]!).join(' ');
  });
}

async function fileOf(contents: readonly string[]) {
  const store = openStore(path.join(tempFolder(), 'latent.sqlite'), { role: 'worker', create: true });
  onTestFinished(() => store.close());
  await seedMemories(
    store,
    contents.map((content) => ({ content })),
    NOW,
  );
  let [now, pauses] = [NOW, 0];
  const context: LatentContext = {
    open: () => ({ store }) as ReturnType<LatentContext['open']>,
    clock: { now: () => now },
    pause: () => Promise.resolve(void (pauses += 1)),
  };
  return {
    store,
    fit: () => fitLatentSpace(context),
    pauses: () => pauses,
    advance: (ms: number) => void (now += ms),
  };
}

function similarity(space: LatentSpace, one: string, other: string): number {
  const [a, b] = [one, other].map((text) => placeIn(space, countWords(text).counts));
  return a!.reduce((sum, value, place) => sum + value * b![place]!, 0);
}

const knows = (store: Store, word: string) => readLatentSpace(store)!.hashes.includes(stemHash(stemOf(word)));

test('texts of one topic lie near each other, whatever of its words they have', async () => {
  const file = await fileOf(longTexts(240));
  expect(await file.fit()).toBe(true);
  expect(file.pauses()).toBeGreaterThan(2);
  const space = readLatentSpace(file.store)!;
  const [harbour, polar] = [TOPICS[0]!, TOPICS[1]!];
  const part = (topic: readonly string[], from: number) => topic.slice(from, from + 20).join(' ');
  for (const from of [0, 20, 40]) {
    const same = similarity(space, part(harbour, from), part(harbour, from + 20));
    expect(same).toBeGreaterThan(0.5);
    expect(Math.abs(similarity(space, part(harbour, from), part(polar, from)))).toBeLessThan(0.2);
  }
  expect(placeIn(space, countWords('zebra').counts)).toBeNull();
});

test('equal files have equal spaces, which hold none of the words', async () => {
  const texts = longTexts(240);
  const [one, other] = [await fileOf(texts), await fileOf(texts)];
  await one.fit();
  await other.fit();
  expect(readLatentSpace(one.store)).toEqual(readLatentSpace(other.store));
  const stored = one.store.db
    .prepare(`SELECT group_concat(value) FROM store_info WHERE key GLOB 'latent_*'`)
    .pluck()
    .get();
  for (const word of TOPICS.flat()) expect(stored).not.toContain(word);
});

test('a file with fewer than 200 long texts has no space, however many short ones it has', async () => {
  const file = await fileOf([...longTexts(150), ...longTexts(300, 12)]);
  expect(await file.fit()).toBe(true);
  expect(readLatentSpace(file.store)).toBeNull();
  expect(findLatentFit(file.store)).toMatchObject({ memories: 450, stems: 0 });
  const small = await fileOf(longTexts(150));
  expect(await small.fit()).toBe(false);
  expect(findLatentFit(small.store)).toBeUndefined();
});

test('words that were deleted leave with the next fit, after a day', async () => {
  const file = await fileOf([...longTexts(240), ...longTexts(4).map((text) => `${text} wintergreen`)]);
  await file.fit();
  expect(knows(file.store, 'wintergreen')).toBe(true);
  const doomed = file.store.db.prepare(`SELECT seq FROM memories WHERE content LIKE '%wintergreen'`).pluck().all();
  file.store.write(() => {
    for (const memoryNo of doomed as number[]) deleteMemoryRow(file.store, memoryNo);
  });
  expect(await file.fit()).toBe(false); // No day has passed.
  file.advance(DAY_MS);
  expect(await file.fit()).toBe(true);
  expect(knows(file.store, 'wintergreen')).toBe(false);
  file.advance(DAY_MS);
  expect(await file.fit()).toBe(false); // Nothing has changed.
});
