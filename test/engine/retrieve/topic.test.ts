import { describe, expect, test } from 'vitest';
import type { Candidate } from '../../../src/engine/retrieve/candidate.ts';
import { applyTopic, type TopicSources } from '../../../src/engine/retrieve/topic.ts';
import type { OwnText, TextReader } from '../../../src/engine/store/own-texts.ts';
import { LATENT_DIMENSIONS, type LatentSpace, stemHash } from '../../../src/engine/text/latent-space.ts';
import { stemOf } from '../../../src/engine/text/stem-finder.ts';

const readerOf =
  (contents: readonly string[]): TextReader =>
  (memoryNos, characters) =>
    new Map(
      memoryNos.map((memoryNo): [number, OwnText] => [
        memoryNo,
        {
          content: contents[memoryNo]!.slice(0, characters),
          title: '',
          gist: '',
          entities: '[]',
          tags: '[]',
          files: '[]',
        },
      ]),
    );

/** Candidates for these texts, best first, with raw scores that fall by .02. */
function candidatesOf(contents: readonly string[]): Candidate[] {
  return contents.map(
    (_, memoryNo) =>
      ({
        row: { memoryNo, id: `m${memoryNo}` },
        rawScore: 1 - 0.02 * memoryNo,
        adjustments: [],
      }) as unknown as Candidate,
  );
}

const apply = (contents: readonly string[], latent: Partial<TopicSources> = {}) =>
  applyTopic(candidatesOf(contents), {
    texts: readerOf(contents),
    raritiesOf: (words) => words.map(() => 1),
    ...latent,
  });
const order = (contents: readonly string[], latent?: Partial<TopicSources>) =>
  apply(contents, latent).map(({ row }) => row.memoryNo);

/** A text of `count` words about a topic. */
const about = (topic: string, count: number) =>
  Array.from({ length: count }, (_, place) => `${topic}${String.fromCharCode(97 + (place % 9))}x`).join(' ');
const LONG = [about('shell', 130), about('wing', 130), ...Array.from({ length: 8 }, () => about('shell', 130))];

test('a long text that is about something else than the best ones falls behind them', () => {
  expect(order(LONG)).toEqual([0, 2, 3, 4, 5, 6, 7, 8, 9, 1]);
});

test('a list with a word on each line is long, too', () => {
  expect(order(LONG.map((text) => text.replaceAll(' ', '\n')))).toEqual([0, 2, 3, 4, 5, 6, 7, 8, 9, 1]);
});

test('raw scores stay at their places, and the adjustments say how each came about', () => {
  const moved = apply(LONG);
  expect(moved.map(({ rawScore }) => rawScore)).toEqual(candidatesOf(LONG).map(({ rawScore }) => rawScore));
  const last = moved.at(-1)!;
  expect(0.98 * last.adjustments[0]!.factor).toBeCloseTo(last.rawScore, 12);
});

test('short texts change nothing, in whatever script', () => {
  const short = LONG.map((text) => text.split(' ').slice(0, 30).join(' '));
  expect(order(short)).toEqual(short.map((_, place) => place));
  const chinese = [
    '壳体屈曲应力'.repeat(12),
    '机翼升力系数'.repeat(12),
    ...Array.from({ length: 8 }, () => '壳体屈曲应力'.repeat(12)),
  ];
  expect(order(chinese)).toEqual(chinese.map((_, place) => place));
});

test('passages of a chat have no topic: half of the texts begin with speakers who begin others, too', () => {
  const chat = (speakers: readonly string[]) =>
    LONG.map((text, place) => (speakers[place] === undefined ? text : `${speakers[place]}: ${text}`));
  const unchanged = LONG.map((_, place) => place);
  expect(order(chat(['Ada', 'Bo', 'Ada', 'Bo', 'Ada']))).toEqual(unchanged);
  expect(order(chat(['Ada', 'Bo', 'Ada', 'Bo']))).not.toEqual(unchanged);
  // Headings that differ are no speakers.
  expect(order(chat(['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J']))).not.toEqual(unchanged);
});

test('only the first 24 candidates change places', () => {
  const many = [
    ...Array.from({ length: 24 }, () => about('wing', 130)),
    ...Array.from({ length: 6 }, () => about('shell', 130)),
  ];
  expect(order(many).slice(24)).toEqual([24, 25, 26, 27, 28, 29]);
  const mixed = many.map((text, place) => (place === 3 ? about('shell', 130) : text));
  expect(order(mixed).indexOf(3)).toBe(23);
});

test('nothing and a single candidate stay as they are', () => {
  expect(order([])).toEqual([]);
  expect(order([LONG[0]!])).toEqual([0]);
});

describe('in a latent space', () => {
  /** A space in which the words of each topic lie in a direction of their own. */
  function spaceOf(topics: Readonly<Record<string, number>>): LatentSpace {
    const stems = Object.entries(topics).flatMap(([text, direction]) =>
      [...new Set(text.split(' '))].map((word) => ({ hash: stemHash(stemOf(word)), direction })),
    );
    stems.sort((a, b) => a.hash - b.hash);
    const vectors = new Int8Array(stems.length * LATENT_DIMENSIONS);
    for (const [place, { direction }] of stems.entries()) vectors[place * LATENT_DIMENSIONS + direction] = 127;
    return {
      hashes: Uint32Array.from(stems, ({ hash }) => hash),
      weights: Float32Array.from(stems, () => 1),
      vectors,
    };
  }
  // All texts are alike to the words of the best ones; only the space knows that hulls are what the question means.
  const texts = [about('wing', 130), about('keel', 130), about('mast', 130)];
  const space = spaceOf({ [about('wing', 9)]: 0, [about('keel', 9)]: 1, [about('mast', 9)]: 2, 'hull hulls': 1 });

  test('a long text near the question comes first, whatever words it uses', () => {
    const latent = { question: 'which hulls are strong', latentSpace: () => space };
    expect(order(texts, latent)[0]).toBe(1);
    const moved = apply(texts, latent);
    expect(moved.map(({ rawScore }) => rawScore)).toEqual(candidatesOf(texts).map(({ rawScore }) => rawScore));
  });

  test('nothing changes without a space, without a question, and where the space knows none of its words', () => {
    const plain = order(texts);
    expect(order(texts, { question: 'which hulls are strong', latentSpace: () => null })).toEqual(plain);
    expect(order(texts, { latentSpace: () => space })).toEqual(plain);
    expect(order(texts, { question: 'who sang', latentSpace: () => space })).toEqual(plain);
  });

  test('is not even read for short texts', () => {
    const latentSpace = () => {
      throw new Error('read');
    };
    const short = texts.map((text) => text.split(' ').slice(0, 30).join(' '));
    expect(order(short, { question: 'which hulls are strong', latentSpace })).toEqual([0, 1, 2]);
  });
});
