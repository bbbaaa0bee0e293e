import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import {
  copyKept,
  isKept,
  isKeptLong,
  keepList,
  NEVER_KEPT,
} from '../../../../src/engine/store/word-index/kept-lists.ts';
import { openWordSearch } from '../../../../src/engine/store/word-index/open-word-search.ts';
import { describeWordSearch, openPagedFixture, PAGED_TEXTS, WEIGHTS } from '../../../conformance/word-search.ts';

describeWordSearch('fts5-direct');

test('the index is read as it is after more words were asked for than are remembered', () => {
  const fixture = openPagedFixture('fts5-direct');
  onTestFinished(() => fixture.close());
  const { reader } = fixture;
  fixture.expectSame(['w1']);
  const search = reader.read(() => openWordSearch(reader));
  expect(reader.read(() => openWordSearch(reader))).toBe(search);
  const asked = Array.from({ length: 6_000 }, (_, at) => `other${at}`);
  const found = reader.read(() => asked.map(openWordSearch(reader).frequencyOf));
  expect(new Set(found)).toEqual(new Set([0]));
  expect(reader.read(() => openWordSearch(reader))).not.toBe(search);
  for (const texts of PAGED_TEXTS) fixture.expectSame(texts);
});

/** Numbers of 0 to 1 that are small mostly. */
const skewed = fc.double({ min: 0, max: 1, noNaN: true }).map((share) => share ** 3);
const askedTexts = fc.uniqueArray(
  fc.oneof(
    { weight: 5, arbitrary: skewed.map((share) => `w${Math.floor(2_000 * share)}`) },
    { weight: 1, arbitrary: fc.constantFrom('the', 'nothing', 'w0 w1', 'the w0', 'w1 w0 w2') },
  ),
  { minLength: 1, maxLength: 12 },
);
const limits = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constantFrom(500, 5_000));
const columnWeights = fc.oneof(
  fc.constant(WEIGHTS),
  fc.array(fc.constantFrom(0, 0.1, 1, 3), { minLength: WEIGHTS.length, maxLength: WEIGHTS.length }),
);

test('what is skipped changes no answer, to the last digit', () => {
  const fixture = openPagedFixture('fts5-direct');
  onTestFinished(() => fixture.close());
  const { reader } = fixture;
  fc.assert(
    fc.property(askedTexts, limits, columnWeights, fc.nat({ max: 9 }), (texts, limit, weights, remainder) => {
      reader.read(() => {
        const words = openWordSearch(reader);
        // With so many wanted, nothing is skipped.
        const all = words.best(texts, weights, 1e6);
        const sums = new Map<number, number>();
        for (const text of texts)
          for (const { memoryNo, bm25 } of words.best([text], weights, 1e6))
            sums.set(memoryNo, (sums.get(memoryNo) ?? 0) + bm25);
        expect(all).toHaveLength(sums.size);
        // The order in which the words are added decides the last digit.
        for (const { memoryNo, bm25 } of all)
          if (bm25 !== sums.get(memoryNo)) expect(bm25).toBeCloseTo(sums.get(memoryNo)!, 9);
        expect(words.best(texts, weights, limit)).toEqual(all.slice(0, limit));
        const isAmong = ({ memoryNo }: { memoryNo: number }) => memoryNo % 10 === remainder;
        const among = Array.from({ length: 40_000 }, (_, at) => 10 * at + remainder);
        expect(words.bestOf(texts, weights, among, limit)).toEqual(all.filter(isAmong).slice(0, limit));
      });
    }),
    { numRuns: 150 },
  );
});

test('the best rows are those that FTS5 finds, whatever is asked for', () => {
  const [direct, match] = [openPagedFixture('fts5-direct'), openPagedFixture('fts5-match')];
  onTestFinished(() => [direct, match].forEach((fixture) => fixture.close()));
  const bestOf = ({ reader }: typeof direct, texts: readonly string[], limit: number) =>
    reader.read(() => openWordSearch(reader).best(texts, WEIGHTS, limit));
  fc.assert(
    fc.property(askedTexts, fc.integer({ min: 1, max: 40 }), (texts, limit) => {
      const [found, expected] = [bestOf(direct, texts, limit), bestOf(match, texts, limit)];
      expect(found).toHaveLength(expected.length);
      for (const [place, { bm25 }] of found.entries()) expect(bm25 / expected[place]!.bm25).toBeCloseTo(1, 9);
    }),
    { numRuns: 40 },
  );
});

test('lists are read from the file again once others took their place in memory', () => {
  const fixture = openPagedFixture('fts5-direct');
  onTestFinished(() => fixture.close());
  const { reader } = fixture;
  const ask = () =>
    reader.read(() => PAGED_TEXTS.map((texts) => openWordSearch(reader).best([...texts, 'w1500'], WEIGHTS, 50)));
  const before = ask();
  const others = Buffer.alloc(1_000, 7);
  const names = Array.from({ length: 5_000 }, () => keepList(others, 0, others.length));
  expect([isKept(names[0]!), isKept(names.at(-1)!)]).toEqual([false, true]);
  expect(ask()).toEqual(before);
  // Lists that were used meanwhile stay.
  const list = Buffer.from('a list that is used');
  let name = keepList(list, 2, list.length);
  for (let round = 0; round < 5_000; round += 1) {
    keepList(others, 0, others.length);
    expect(isKept(name)).toBe(true);
    const copy = Buffer.alloc(list.length);
    copyKept(name, list.length - 2, copy, 2);
    expect(copy.toString('utf8', 2)).toBe('list that is used');
    if (isKeptLong(name)) name = keepList(copy, 2, copy.length);
  }
  expect(keepList(others, 0, 0)).not.toBe(NEVER_KEPT);
  expect(keepList(Buffer.alloc(2_000), 0, 2_000)).toBe(NEVER_KEPT);
  expect(isKept(NEVER_KEPT)).toBe(false);
});
