import { expect, test } from 'vitest';
import { createTextSource } from '../../../bench/natural-text.ts';
import { openCodeMatrix } from '../../../src/engine/adapters/bit-index/code-matrix.ts';
import { createSharedVectors } from '../../../src/engine/adapters/bit-index/shared-vectors.ts';
import { createHashedEmbedder } from '../../../src/engine/adapters/hashed-embedder.ts';
import type { Question } from '../../../src/engine/adapters/following-index/followed-vectors.ts';
import { createRandom } from '../../../src/engine/random.ts';
import type { VectorCode } from '../../../src/engine/store/vector-codes.ts';
import { cosine, signBits } from '../../../src/engine/store/vector-encoding.ts';
import { randomVectors } from '../../conformance/vector-index.ts';

const DIMENSIONS = 768;
const KERNELS = ['wasm', 'js'] as const;

/** A matrix of one thread, told of each change by itself. */
function createCodeMatrix(dimensions: number, kernels: 'auto' | 'wasm' | 'js' = 'auto') {
  const matrix = openCodeMatrix(createSharedVectors({ space: { modelNo: 1, dimensions, encoding: 'int5' }, kernels }));
  let at = { vectorNo: 0, removalNo: 0 };
  const change = (removed: readonly number[], added: readonly VectorCode[]) => {
    at = { vectorNo: added.at(-1)?.vectorNo ?? at.vectorNo, removalNo: at.removalNo + removed.length };
    matrix.alone(() => matrix.change({ ...at, removed, added }));
  };
  return {
    append: (added: readonly VectorCode[]) => change([], added),
    remove: (vectorNo: number) => change([vectorNo], []),
    nearest: (questions: readonly Question[]) => matrix.answer(at, (vectors) => vectors.nearest(questions))!.value,
    listOf: (userNo: number, max: number) => matrix.answer(at, (vectors) => vectors.listOf(userNo, max))!.value,
    get count() {
      return matrix.count;
    },
    get removed() {
      return matrix.removed;
    },
    get bytes() {
      return matrix.bytes;
    },
  };
}

function row(vectorNo: number, code: Uint8Array, changes: Partial<VectorCode> = {}): VectorCode {
  return { vectorNo, memory: vectorNo, userNo: 0, role: 'whole', code, ...changes };
}

function ranked(embedding: Float32Array, k: number, changes: Partial<Question> = {}): Question {
  return { embedding, userNo: undefined, purpose: 'rank', upTo: Infinity, k, ...changes };
}

test('of texts embedded offline 99 in 100 of the exact ten nearest are among 120 candidates', () => {
  const embedder = createHashedEmbedder({ dimensions: DIMENSIONS });
  const source = createTextSource(3);
  // More than go on from the first pass.
  const vectors = Array.from({ length: 17_000 }, (_, i) => embedder.embedOne(source.text(60 + (i % 160)), 'document'));
  const matrix = createCodeMatrix(DIMENSIONS);
  matrix.append(vectors.map((vector, i) => row(i, signBits(vector))));
  const questions = Array.from({ length: 100 }, () => embedder.embedOne(source.sentence(), 'query'));
  const found = matrix.nearest(questions.map((question) => ranked(question, 120)));
  const recalled = questions.map((question, place) => {
    const similarities = Float64Array.from(vectors, (vector) => cosine(question, vector));
    const tenth = similarities.toSorted().at(-10)!;
    return Math.min(10, found[place]!.filter((vectorNo) => similarities[vectorNo]! >= tenth).length) / 10;
  });
  expect(recalled.reduce((sum, share) => sum + share, 0) / recalled.length).toBeGreaterThanOrEqual(0.99);
  expect(matrix.nearest(questions.map((question) => ranked(question, 120)))).toEqual(found);
});

test('among the memories of others, of which more go on than are wanted, 99 in 100 links lead where an exact search leads', () => {
  const embedder = createHashedEmbedder({ dimensions: DIMENSIONS });
  const source = createTextSource(5);
  const vectors = Array.from({ length: 12_000 }, (_, i) => embedder.embedOne(source.text(60 + (i % 160)), 'document'));
  const matrix = createCodeMatrix(DIMENSIONS);
  matrix.append(vectors.map((vector, i) => row(i, signBits(vector), { userNo: Number(i % 5 === 0) })));
  for (let removed = 1; removed < vectors.length; removed += 7) matrix.remove(removed);
  const isCandidate = (place: number) => place % 5 !== 0 && place % 7 !== 1;
  const asked = vectors.map((_, place) => place).filter((place) => place % 20 === 4 && isCandidate(place));
  const link = { purpose: 'link', userNo: 0 } as const;
  const found = matrix.nearest(asked.map((place) => ranked(vectors[place]!, 16, link)));
  let [links, same] = [0, 0];
  for (const [at, place] of asked.entries()) {
    expect(found[at]!.filter((other) => !isCandidate(other))).toEqual([]);
    const similarities = vectors.map((vector, other) =>
      isCandidate(other) && other !== place ? cosine(vectors[place]!, vector) : -1,
    );
    const nearest = Math.max(...similarities);
    if (nearest < embedder.waypointThreshold) continue;
    links += 1;
    same += Number(found[at]!.some((other) => similarities[other] === nearest));
  }
  expect(links).toBeGreaterThan(50);
  expect(same / links).toBeGreaterThanOrEqual(0.99);
});

/**
 * Vectors of 300 topics that all have a large part in common, as those of many models do: two strangers have a cosine
 * of .7.
 */
function createLeaningVectors(seed: number): (topic: number) => Float32Array {
  const random = createRandom(seed);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const direction = () => Float32Array.from({ length: DIMENSIONS }, normal);
  const [common, topics] = [direction(), Array.from({ length: 300 }, direction)];
  return (topic) =>
    Float32Array.from(common, (value, i) => 1.1 * value + 0.45 * topics[topic % topics.length]![i]! + 0.55 * normal());
}

test('vectors that have a large part in common are told apart by the rest', () => {
  const next = createLeaningVectors(11);
  const vectors = Array.from({ length: 6_000 }, (_, i) => next(i));
  const matrix = createCodeMatrix(DIMENSIONS);
  matrix.append(vectors.map((vector, i) => row(i, signBits(vector))));
  let [ranked10, linked] = [0, 0];
  for (let topic = 0; topic < 40; topic += 1) {
    const question = next(7 * topic);
    const nearest = vectors
      .map((vector, place) => ({ place, similarity: cosine(question, vector) }))
      .sort((a, b) => b.similarity - a.similarity)
      .map(({ place }) => place);
    const [byRank, byLink] = matrix.nearest([
      ranked(question, 200),
      ranked(question, 16, { purpose: 'link', userNo: 0 }),
    ]) as [number[], number[]];
    ranked10 += nearest.slice(0, 10).filter((place) => byRank.includes(place)).length;
    linked += Number(byLink.includes(nearest[0]!));
  }
  expect(ranked10 / 400).toBeGreaterThanOrEqual(0.99);
  expect(linked / 40).toBeGreaterThanOrEqual(0.8);
});

test('an index that vectors have left answers as one that never had them', () => {
  const next = createLeaningVectors(13);
  const codes = Array.from({ length: 9_000 }, (_, i) => row(i, signBits(next(i)), { userNo: i % 3 }));
  const isGone = (i: number) => i % 10 < 4 || (i > 4_000 && i < 5_000);
  const [grown, loaded] = [createCodeMatrix(DIMENSIONS), createCodeMatrix(DIMENSIONS)];
  for (let at = 0; at < codes.length; at += 700) {
    grown.append(codes.slice(at, at + 700));
    grown.nearest([ranked(next(at), 5)]);
  }
  for (const { vectorNo } of codes) if (isGone(vectorNo)) grown.remove(vectorNo);
  loaded.append(codes.filter(({ vectorNo }) => !isGone(vectorNo)));
  const questions = Array.from({ length: 30 }, (_, at) =>
    ranked(next(at), 50, { purpose: at % 2 === 0 ? 'rank' : 'link', userNo: at % 5 === 0 ? undefined : at % 3 }),
  );
  expect(grown.nearest(questions)).toEqual(loaded.nearest(questions));
});

test('both kernels give the same answers, whatever is asked, appended and removed', () => {
  const next = createLeaningVectors(17);
  const [wasm, js] = [createCodeMatrix(DIMENSIONS, 'wasm'), createCodeMatrix(DIMENSIONS, 'js')];
  // More than a segment, and one user of a few and one of most.
  const codes = Array.from({ length: 18_000 }, (_, i) =>
    row(i, signBits(next(i)), { userNo: i % 10 === 0 ? 0 : 1, role: (['whole', 'window', 'mean'] as const)[i % 3]! }),
  );
  const ask = (at: number) =>
    Array.from({ length: 24 }, (_, place) =>
      ranked(next(at + place), [1, 40, 500][place % 3]!, {
        purpose: place % 2 === 0 ? 'rank' : 'link',
        userNo: [undefined, 0, 1, 7][place % 4],
        upTo: place % 11 === 0 ? 9_000 : Infinity,
      }),
    );
  for (let at = 0; at < codes.length; at += 6_000) {
    for (const matrix of [wasm, js]) {
      matrix.append(codes.slice(at, at + 6_000));
      for (let removed = at; removed < at + 2_000; removed += 3) matrix.remove(removed);
    }
    const questions = ask(at);
    const found = js.nearest(questions);
    expect(found).toEqual(wasm.nearest(questions));
    expect(found.some((numbers) => numbers.length > 30)).toBe(true);
    expect(js.listOf(0, 5_000)).toEqual(wasm.listOf(0, 5_000));
  }
  expect([js.count, js.removed]).toEqual([wasm.count, wasm.removed]);
});

test.each(KERNELS)(
  'by %s: of more equal vectors than go on to the second pass the oldest are found, whoever asks',
  (kernels) => {
    const [near, far] = [randomVectors(1, 64), randomVectors(2, 64)].map((next) => next()) as [
      Float32Array,
      Float32Array,
    ];
    const [nearCode, farCode] = [signBits(near), signBits(far)];
    const matrix = createCodeMatrix(64, kernels);
    matrix.append(Array.from({ length: 500 }, (_, i) => row(i, farCode)));
    matrix.append(Array.from({ length: 70_000 }, (_, i) => row(500 + i, nearCode, { userNo: i % 2 })));
    const oldest = (count: number, step = 1) => Array.from({ length: count }, (_, i) => 500 + step * i);
    expect(matrix.nearest([ranked(near, 20)])).toEqual([oldest(20)]);
    expect(matrix.nearest([ranked(near, 20, { userNo: 1 })])[0]).toEqual(oldest(20, 2).map((vectorNo) => vectorNo + 1));
    // The last one that the list of the second pass has no room for.
    const last = near.map((value) => -value);
    matrix.append([row(80_000, signBits(last))]);
    expect(matrix.nearest([ranked(last, 1)])).toEqual([[80_000]]);
  },
);

const WIDTHS = [8, 64, 72, 1_000, 1_536, 4_096].flatMap((dimensions) =>
  KERNELS.map((kernels) => ({ dimensions, kernels })),
);

test.each(WIDTHS)(
  '$dimensions dimensions by $kernels: each is found by itself, across segments',
  ({ dimensions, kernels }) => {
    const random = randomVectors(5, dimensions);
    const matrix = createCodeMatrix(dimensions, kernels);
    const filler = signBits(random());
    const places = new Map([1, 8_191, 8_192, 16_383, 16_384, 20_000].map((vectorNo) => [vectorNo, random()]));
    matrix.append(
      Array.from({ length: 20_000 }, (_, i) => row(i + 1, places.has(i + 1) ? signBits(places.get(i + 1)!) : filler)),
    );
    for (const [vectorNo, embedding] of places) {
      // So few dimensions are the same for many.
      if (dimensions > 8) expect(matrix.nearest([ranked(embedding, 1)])).toEqual([[vectorNo]]);
      matrix.remove(vectorNo);
      matrix.remove(vectorNo);
      expect(matrix.nearest([ranked(embedding, 30)])[0]).not.toContain(vectorNo);
    }
    expect([matrix.count, matrix.removed]).toEqual([20_000 - places.size, places.size]);
  },
);

test('a small index counts no room that only the questions of large ones use', () => {
  const embedding = randomVectors(7, DIMENSIONS)();
  const matrix = createCodeMatrix(DIMENSIONS);
  matrix.append([row(1, signBits(embedding))]);
  expect(matrix.nearest([ranked(embedding, 10)])).toEqual([[1]]);
  expect(matrix.bytes).toBeLessThan(1.5e6);
});

test('dimensions that make no whole bytes, or too many of them, are refused', () => {
  for (const dimensions of [0, 12, 8_200]) expect(() => createCodeMatrix(dimensions)).toThrow(/a multiple of 8/);
});
