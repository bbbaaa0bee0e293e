import path from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { putStatedEdge } from '../../../src/engine/store/edges.ts';
import { compileFilter } from '../../../src/engine/store/filter.ts';
import { openStore, type Store } from '../../../src/engine/store/open-store.ts';
import { countMemories } from '../../../src/engine/store/memory-counts.ts';
import { rankVectors, rankVectorsOf } from '../../../src/engine/store/vector-ranks.ts';
import { listPassing } from '../../../src/engine/store/passing-memories.ts';
import { stepsFrom } from '../../../src/engine/store/link-steps.ts';
import { snapshotVersion } from '../../../src/engine/store/snapshot.ts';
import { cosine, decodeVector, encodeVector } from '../../../src/engine/store/vector-encoding.ts';
import { insertVector } from '../../../src/engine/store/vectors.ts';
import { DIMENSIONS, randomVectors } from '../../conformance/vector-index.ts';
import { seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2025, 0, 1);
const everything = compileFilter({}, NOW);

let file: string;
let store: Store;
beforeAll(async () => {
  file = path.join(tempFolder(), 'search.sqlite');
  store = openStore(file, { role: 'worker', create: true });
  const contents = ['an apple', 'an apple', 'apples and pears', 'a pear tree', 'plums'];
  await seedMemories(
    store,
    contents.map((content) => ({ content })),
    NOW,
  );
  return () => store.close();
});

test('memories are counted', () => {
  expect(countMemories(store)).toBe(5);
});

test('the snapshot has another name after any write, of this connection or of another', async () => {
  const other = openStore(file, { role: 'worker' });
  const names = [snapshotVersion(store), snapshotVersion(store)];
  expect(new Set(names).size).toBe(1);
  await seedMemories(store, [{ content: 'quinces' }], NOW);
  names.push(snapshotVersion(store));
  await seedMemories(other, [{ content: 'medlars' }], NOW);
  names.push(snapshotVersion(store));
  expect(new Set(names).size).toBe(3);
  other.close();
});

test('links are the same in the same order whether an origin has few or many', async () => {
  const own = openStore(path.join(tempFolder(), 'links.sqlite'), { role: 'worker', create: true });
  const memories = Array.from({ length: 460 }, (_, place) => ({ content: `memory ${place}`, userId: `u${place % 5}` }));
  const memoryNos = (await seedMemories(own, memories, NOW)).map(({ memoryNo }) => memoryNo);
  const [origin, other, hub, ...others] = memoryNos as [number, number, number, ...number[]];
  const types = ['supports', 'derived_from', 'contradicts'] as const;
  own.write(() => {
    for (const [place, memoryNo] of others.slice(0, 60).entries()) {
      const one = place % 2 === 0 ? origin : other;
      const ends = place % 3 === 0 ? { src: memoryNo, dst: one } : { src: one, dst: memoryNo };
      putStatedEdge(own, { ...ends, type: types[(place % 7) % 3]! }, (place % 4) / 4, NOW);
    }
    for (const memoryNo of others) putStatedEdge(own, { src: hub, dst: memoryNo, type: 'supports' }, 0.5, NOW);
  });
  for (const filter of [everything, compileFilter({ userIds: ['u1', 'u3'] }, NOW)]) {
    for (const perOrigin of [1, 3, 50]) {
      const few = stepsFrom(own, [other, origin], { filter }, perOrigin);
      expect(few.length).toBeGreaterThan(0);
      const passing = new Set(listPassing(own, filter, 10_000));
      expect(stepsFrom(own, [other, origin], { filter, passing }, perOrigin)).toEqual(few);
      const known = new Set([...passing].filter((memoryNo) => memoryNo % 2 === 0));
      expect(stepsFrom(own, [other, origin], { filter, known }, perOrigin)).toEqual(few);
      // With the hub there are too many links to read all of them.
      const many = stepsFrom(own, [other, hub, origin], { filter }, perOrigin);
      expect(many.filter((step) => step.origin !== hub)).toEqual(few);
    }
  }
  own.close();
});

test('the strongest link of a hub is followed, and that of another origin, however many links the hub has', async () => {
  const own = openStore(path.join(tempFolder(), 'hub.sqlite'), { role: 'worker', create: true });
  const names = ['hub', 'other', 'far', ...Array.from({ length: 1_500 }, (_, place) => `child ${place}`)];
  const seeded = await seedMemories(
    own,
    names.map((content) => ({ content, userId: content === 'far' ? 'ben' : 'ann', sessionId: content.slice(0, 9) })),
    NOW,
  );
  const [hub, other, far, ...children] = seeded.map(({ memoryNo }) => memoryNo) as [
    number,
    number,
    number,
    ...number[],
  ];
  const last = children.at(-1)!;
  own.write(() => {
    for (const [place, child] of children.entries()) {
      putStatedEdge(own, { src: child, dst: hub, type: 'derived_from' }, place / 1_500, NOW);
      putStatedEdge(own, { src: hub, dst: child, type: 'contradicts' }, 1, NOW);
    }
    putStatedEdge(own, { src: hub, dst: far, type: 'supports' }, 0.1, NOW);
    putStatedEdge(own, { src: far, dst: other, type: 'supports' }, 0.1 + 0.2, NOW);
  });
  const steps = stepsFrom(own, [hub, other], { filter: everything }, 2);
  expect(steps).toEqual([
    { origin: hub, reached: last, type: 'derived_from', weight: 1_499 / 1_500 },
    { origin: hub, reached: children.at(-2), type: 'derived_from', weight: 1_498 / 1_500 },
    // To the last bit.
    { origin: other, reached: far, type: 'supports', weight: 0.1 + 0.2 },
  ]);
  // Those outside the filter take no place.
  const bens = compileFilter({ userIds: ['ben'] }, NOW);
  expect(stepsFrom(own, [hub], { filter: bens }, 2).map(({ reached }) => reached)).toEqual([far]);
  const weakest = compileFilter({ sessionIds: ['child 0'] }, NOW);
  expect(stepsFrom(own, [hub], { filter: weakest }, 2).map(({ reached }) => reached)).toEqual([children[0]]);
  own.close();
});

test.each(['int5', 'float32'] as const)(
  'vectors in %s are ranked as comparing each with the query ranks them, ties by number, each memory once',
  async (encoding) => {
    const own = openStore(path.join(tempFolder(), 'ranks.sqlite'), { role: 'worker', create: true });
    const space = { modelNo: 1, dimensions: DIMENSIONS, encoding };
    const random = randomVectors(9);
    // Few, so that many memories are as near as each other.
    const kinds = Array.from({ length: 20 }, random);
    const contents = Array.from({ length: 1_300 }, (_, place) => ({ content: `note ${place}` }));
    const memoryNos = (await seedMemories(own, contents, NOW)).map(({ memoryNo }) => memoryNo);
    const stored: { memoryNo: number; window: number; vectorNo: number; embedding: Float32Array }[] = [];
    own.write(() => {
      for (const [place, memory] of memoryNos.entries()) {
        for (let windowNo = 0; windowNo < 1 + Number(place % 3 === 0); windowNo += 1) {
          const embedding = kinds[(place + 7 * windowNo) % kinds.length]!;
          const vector = { memory, userNo: 0, windowNo, role: 'window', embedding, textHash: null } as const;
          const vectorNo = insertVector(own, space, vector);
          stored.push({ memoryNo: memory, window: windowNo, vectorNo, embedding });
        }
      }
    });
    const query = random();
    const asStored = (vector: Float32Array) => decodeVector(encodeVector(vector, encoding), encoding, DIMENSIONS);
    const similarityOf = new Map(kinds.map((kind) => [kind, cosine(query, asStored(kind))]));
    const best = new Map<number, { memoryNo: number; window: number; similarity: number }>();
    for (const { memoryNo, window, embedding } of stored) {
      const similarity = similarityOf.get(embedding)!;
      if (similarity > (best.get(memoryNo)?.similarity ?? -2)) best.set(memoryNo, { memoryNo, window, similarity });
    }
    const expected = [...best.values()].sort((a, b) => b.similarity - a.similarity || a.memoryNo - b.memoryNo);
    for (const limit of [1, 100, 1_300, 5_000]) {
      const scan = { space, embedding: query, limit };
      const wanted = expected.slice(0, limit).map(({ memoryNo, window }) => [memoryNo, window]);
      const { nearest: found, compared } = rankVectorsOf(own, scan, memoryNos.toReversed());
      const inOrder = compared.toSorted((a, b) => b.similarity - a.similarity || a.memoryNo - b.memoryNo);
      expect(inOrder.map(({ memoryNo, window }) => [memoryNo, window])).toEqual(
        expected.map(({ memoryNo, window }) => [memoryNo, window]),
      );
      expect(found.map(({ memoryNo, window }) => [memoryNo, window])).toEqual(wanted);
      for (const [place, { similarity }] of found.entries()) {
        expect(similarity).toBeCloseTo(expected[place]!.similarity, 3);
      }
      const byNumber = stored.map(({ vectorNo }) => vectorNo);
      expect(rankVectors(own, scan, byNumber, everything)).toEqual(found);
    }
    expect(rankVectorsOf(own, { space, embedding: query, limit: 5 }, [])).toEqual({ nearest: [], compared: [] });
    own.close();
  },
);
