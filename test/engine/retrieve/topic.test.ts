import { expect, test } from 'vitest';
import type { Candidate } from '../../../src/engine/retrieve/candidate.ts';
import { applyTopic } from '../../../src/engine/retrieve/topic.ts';
import type { OwnText, TextReader } from '../../../src/engine/store/own-texts.ts';

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

const apply = (contents: readonly string[]) =>
  applyTopic(candidatesOf(contents), readerOf(contents), (words) => words.map(() => 1));
const order = (contents: readonly string[]) => apply(contents).map(({ row }) => row.memoryNo);

/** A text of `count` words about a topic. */
const about = (topic: string, count: number) =>
  Array.from({ length: count }, (_, place) => `${topic}${String.fromCharCode(97 + (place % 9))}x`).join(' ');
const LONG = [about('shell', 130), about('wing', 130), ...Array.from({ length: 8 }, () => about('shell', 130))];

test('a long text that is about something else than the best ones falls behind them', () => {
  expect(order(LONG)).toEqual([0, 2, 3, 4, 5, 6, 7, 8, 9, 1]);
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
