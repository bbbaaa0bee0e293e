import path from 'node:path';
import { v7 as uuidv7 } from 'uuid';
import { expect, onTestFinished, test } from 'vitest';
import { eraseMemories } from '../../../src/engine/commands/erase.ts';
import { readConfig } from '../../../src/engine/config.ts';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import { createRandom } from '../../../src/engine/random.ts';
import { findLatentFit, readLatentSpace } from '../../../src/engine/store/latent-spaces.ts';
import { openStore, type SqliteStore, type Store } from '../../../src/engine/store/open-store.ts';
import { type LatentSpace, latentVectorOf, stemHash } from '../../../src/engine/text/latent-space.ts';
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
  let onPause = () => {};
  const context: LatentContext = {
    open: () => ({ store }) as unknown as ReturnType<LatentContext['open']>,
    clock: { now: () => now },
    pause: () => {
      pauses += 1;
      onPause();
      return Promise.resolve();
    },
  };
  return {
    store,
    fit: () => fitLatentSpace(context),
    pauses: () => pauses,
    /** Calls `act` at the next pause of a fit. */
    atPause: (act: () => void) => {
      onPause = () => {
        onPause = () => {};
        act();
      };
    },
    /** Erases the memories with a word, as a delete does. @returns their number */
    erase: (word: string) => {
      const found = store.db.prepare(`SELECT seq FROM memories WHERE content LIKE ?`).pluck().all(`%${word}%`);
      const write = { store, indexes: new Map(), config: readConfig({}), now, newId: uuidv7, backlog: { atMost: 0 } };
      return store.write(() => eraseMemories({ ...write, writtenBy: null }, found as number[])).memories;
    },
    advance: (ms: number) => void (now += ms),
  };
}

function similarity(space: LatentSpace, one: string, other: string): number {
  const [a, b] = [one, other].map((text) => latentVectorOf(space, countWords(text).counts));
  return a!.reduce((sum, value, place) => sum + value * b![place]!, 0);
}

/** All that the file keeps of fits, as one text; null for nothing. */
const latentEntries = ({ db }: SqliteStore) =>
  db.prepare(`SELECT group_concat(value) FROM store_info WHERE key GLOB 'latent_*'`).pluck().get();

const knows = (store: Store, word: string) => readLatentSpace(store)!.hashes.includes(stemHash(stemOf(word)));

test('texts of one topic lie near each other, whatever of its words they have', async () => {
  const file = await fileOf(longTexts(240));
  expect(await file.fit()).toBe(true);
  expect(file.pauses()).toBeGreaterThan(0);
  const space = readLatentSpace(file.store)!;
  const [harbour, polar] = [TOPICS[0]!, TOPICS[1]!];
  const part = (topic: readonly string[], from: number) => topic.slice(from, from + 20).join(' ');
  for (const from of [0, 20, 40]) {
    const same = similarity(space, part(harbour, from), part(harbour, from + 20));
    expect(same).toBeGreaterThan(0.5);
    expect(Math.abs(similarity(space, part(harbour, from), part(polar, from)))).toBeLessThan(0.2);
  }
  expect(latentVectorOf(space, countWords('zebra').counts)).toBeNull();
});

test('equal files have equal spaces, which hold none of the words', async () => {
  const texts = longTexts(240);
  const [one, other] = [await fileOf(texts), await fileOf(texts)];
  await one.fit();
  await other.fit();
  expect(readLatentSpace(one.store)).toEqual(readLatentSpace(other.store));
  const stored = latentEntries(one.store);
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

const WITH_RARE_WORDS = [
  ...longTexts(240),
  ...longTexts(4).map((text) => `${text} wintergreen`),
  'A note of few words: marigold.',
];

test('a delete of a long text takes the space with it, and the next fit does not know its words', async () => {
  const file = await fileOf(WITH_RARE_WORDS);
  await file.fit();
  expect(knows(file.store, 'wintergreen')).toBe(true);
  expect(file.erase('marigold')).toBe(1);
  expect(await file.fit()).toBe(false); // The space did not know it, and no day has passed.
  expect(file.erase('wintergreen')).toBe(4);
  expect(latentEntries(file.store)).toBeNull();
  expect(await file.fit()).toBe(true);
  expect(knows(file.store, 'wintergreen')).toBe(false);
  file.advance(DAY_MS);
  expect(await file.fit()).toBe(false); // Nothing has changed.
});

test('a fit during which a long text was deleted is not kept', async () => {
  const file = await fileOf(WITH_RARE_WORDS);
  file.atPause(() => expect(file.erase('wintergreen')).toBe(4));
  expect(await file.fit()).toBe(false);
  expect(latentEntries(file.store)).toBeNull();
  expect(await file.fit()).toBe(true);
  expect(knows(file.store, 'wintergreen')).toBe(false);
});

test('a delete of a memory whose text was long takes the space with it', async () => {
  const file = await fileOf(WITH_RARE_WORDS);
  await file.fit();
  file.store.db.exec(`UPDATE memories SET content = 'Short: saffron.', version = 2 WHERE seq = 1`);
  expect(file.erase('saffron')).toBe(1);
  expect(latentEntries(file.store)).toBeNull();
});
