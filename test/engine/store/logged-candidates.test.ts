import { expect, test } from 'vitest';
import { decodeCandidate, encodeCandidate } from '../../../src/engine/store/logged-candidates.ts';
import type { LoggedCandidate } from '../../../src/engine/types.ts';

const memory = { memoryNo: 7, id: '01a217b7-51fe-76a8-a4c9-524558f09466' };

/** A candidate that all stages left something on. */
const full: LoggedCandidate = {
  ...memory,
  outcome: 'returned',
  hit: {
    path: ['01a217b7-51fe-76a8-a4c9-29e2bee9777c', memory.id],
    supersedes: '01a217b7-51fc-77d0-8839-52f9fc45d7a1',
    version: 3,
    state: {
      state: 'ready',
      status: 'active',
      primarySector: 'procedural',
      sectors: ['procedural', 'semantic'],
      salience: 0.39999991207408375,
      strength: 0.9999997252315193,
      decayLambda: 0.008,
      accessCount: 4,
      lastSeenAt: 1_795_694_219_588,
      sectorConfidence: 0.8433889972281298,
    },
  },
  score: 0.5119327343893645,
  rawScore: 0.852599851630592,
  features: {
    similarity: 1,
    activation: 0.3,
    waypoint: 0.2,
    salience: 0.39999991207408375,
    strength: 0.9999997252315193,
    recency: 0.9999986261583511,
    retention: 0.9999997801852093,
    confidence: 0.9,
  },
  adjustments: [
    { by: 'rerank', factor: 1.015 },
    { by: 'contradicted', factor: 0.3, because: memory.id, automatic: true },
  ],
  rerank: {
    phrases: 0.2,
    identifiers: 0.3,
    fields: 0.4,
    speaker: 0.6,
    statement: 1,
    dated: 0,
    recency: 0.7,
  },
  lexical: { rank: 1, bm25: 6.226738874397124, coverage: 0.47884804265469344 },
  dense: { rank: 2, similarity: 0.21388833396331908, window: 3 },
  fused: { rank: 4, score: 0.01639344262295082 },
  arrival: { from: memory.id, via: 'entity', entity: 'Bergen', weight: 0.4, hops: 1, activation: 0.2 },
  fit: { coverage: 0.47884804265469344, cosine: null, answers: 0.1 },
  held: 0.5,
  isStrange: false,
};
const { hit, ...cut } = full;
const candidates: Readonly<Record<string, LoggedCandidate>> = {
  'one with everything': full,
  'a hit that the query found itself': { ...full, hit: { ...hit!, path: [memory.id] } },
  'one that was cut': { ...cut, outcome: 'below_min_score', held: null, isStrange: true },
  'one that no stage found': { ...cut, rerank: null, lexical: null, dense: null, fused: null, arrival: null },
  'one with a feature of the reranker that this version does not know': {
    ...full,
    rerank: { phrases: 0.5, other: 1 },
  },
};

test.for(Object.entries(candidates))('the log gives back %s as it was', ([, candidate]) => {
  expect(decodeCandidate(encodeCandidate(candidate), memory)).toEqual(candidate);
});

test('measures of the reranker that this version no longer has are read where a row has them', () => {
  const row = JSON.parse(encodeCandidate(full)) as unknown[];
  expect(row[5]).toEqual([null, null, 0.2, 0.3, 0.4, 0.6, 1, 0, 0.7]);
  row[5] = [0.5, 0.1, 0.2, 0.3, 0.4, 0.6, 1, 0, 0.7];
  const rerank = { ...full.rerank, coverage: 0.5, proximity: 0.1 };
  expect(decodeCandidate(JSON.stringify(row), memory)).toEqual({ ...full, rerank });
});

test('a candidate that an earlier version wrote is read as well', () => {
  expect(decodeCandidate(JSON.stringify(full), memory)).toEqual(full);
});

test('a candidate of a version that knew fewer values has these alone', () => {
  const row = JSON.parse(encodeCandidate(full)) as { pop(): unknown[]; push(value: unknown): void };
  const [version, state, ...rest] = row.pop() as [number, unknown[], ...unknown[]];
  row.push([version, state.slice(0, -1), ...rest]);
  const read = decodeCandidate(JSON.stringify(row), memory);
  expect(Object.keys(read.hit!.state)).toEqual(Object.keys(hit!.state).filter((name) => name !== 'sectorConfidence'));
});

test('a candidate takes three fifths of the bytes that it has with names', () => {
  expect(encodeCandidate(full).length).toBeLessThan(JSON.stringify(full).length * 0.61);
});
