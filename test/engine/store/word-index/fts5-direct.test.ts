import { expect, onTestFinished, test } from 'vitest';
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

test('rows that cannot be among the best are left out, and of the best none is', () => {
  const fixture = openPagedFixture('fts5-direct');
  onTestFinished(() => fixture.close());
  const { reader } = fixture;
  const isEverLeftOut = [
    ['w1999', 'w0'],
    ['w800', 'w1500', 'the'],
    ['w1999', 'w1', 'w0', 'the'],
    ['w700 w0', 'w0', 'the'],
    ['w40', 'w2'],
    ['w0 w1', 'w0'],
    ['w3', 'the'],
  ]
    .flatMap((texts) => [1, 3, 30, 500, 5_000].map((limit) => ({ texts, limit })))
    .map(({ texts, limit }) =>
      reader.read(() => {
        const index = openWordSearch(reader);
        const all = index.score(texts, WEIGHTS).best(1e6);
        const some = index.score(texts, WEIGHTS, limit);
        expect(some.best(limit)).toEqual(all.slice(0, limit));
        return some.best(1e6).length < all.length;
      }),
    );
  expect(isEverLeftOut).toContain(true);
  expect(isEverLeftOut).toContain(false);
});
