import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EvaluatedStore, openEvaluatedStore } from '../../bench/evaluated-store.ts';
import { discountedGainAt, mean, recallAt, reciprocalRank } from '../../bench/metrics.ts';
import { OWN_SET } from './own-set.ts';

/**
 * Guards what retrieval reaches, on a set of the project's own and through the real engine with all its defaults. The
 * floors are a little under what was measured when they were set: a change that falls through them made something
 * worse; one that stays well above them may raise them.
 */
const FLOORS = {
  // .9718, .9249 and .9350; plain FTS5 has .9014, .8128 and .8279.
  'recall@10': 0.95,
  MRR: 0.9,
  'nDCG@10': 0.915,
  /**
   * Of the questions without an answer, those that bring nothing: 11 of 17. A floor that empties more of them loses
   * answers.
   */
  'rightly empty': 10 / 17,
  /** Of the questions with an answer, those that bring something: 70 of 71. */
  'not wrongly empty': 70 / 71,
  /** .9577 */
  'recall@10 with floors': 0.95,
} as const;
/** Questions that the default floors cost a memory; it was 1 of 71. */
const MAX_LOST = 2;
const K = 10;

/** One answer: what was found without floors, with the default ones, and by plain FTS5. */
interface Measured {
  readonly query: string;
  readonly reason: string;
  readonly relevant: ReadonlySet<string>;
  readonly found: readonly string[];
  readonly floored: readonly string[];
  readonly plain: readonly string[];
}

let store: EvaluatedStore;
let keys: ReadonlyMap<string, string>;
let answers: readonly Measured[];

beforeAll(async () => {
  store = await openEvaluatedStore(OWN_SET, { now: Date.UTC(2025, 5, 1) });
  keys = new Map(
    OWN_SET.users.flatMap(({ userId, memories }) => memories.map(({ key }) => [store.idOf(userId, key), key] as const)),
  );
  const idsOf = async (place: number, options: object) =>
    (await store.ask(OWN_SET.questions[place]!, { ...options, k: K })).hits.map(({ memory }) => memory.id);
  const measured: Measured[] = [];
  for (const [place, question] of store.questions.entries()) {
    measured.push({
      query: question.query,
      reason: OWN_SET.questions[place]!.reason,
      relevant: question.relevant,
      found: await idsOf(place, { minScore: 0, relativeFloor: 0 }),
      floored: await idsOf(place, {}),
      plain: store.askPlainText(question, K),
    });
  }
  answers = measured;
});
afterAll(() => store[Symbol.asyncDispose]());

const answerable = () => answers.filter(({ relevant }) => relevant.size > 0);
const unanswerable = () => answers.filter(({ relevant }) => relevant.size === 0);

const MEASURES = {
  'recall@10': recallAt.bind(null, K),
  MRR: reciprocalRank,
  'nDCG@10': discountedGainAt.bind(null, K),
} as const;

describe('retrieval on a set of its own', () => {
  test('the set is what it claims to be: every expected memory exists, and no question is asked twice', () => {
    expect(store.memories).toBeGreaterThanOrEqual(120);
    expect(answerable().length).toBeGreaterThanOrEqual(45);
    expect(unanswerable().length).toBeGreaterThanOrEqual(15);
    for (const { query, relevant } of answers) for (const id of relevant) expect(keys.has(id), query).toBe(true);
    expect(new Set(OWN_SET.questions.map(({ userId, query }) => `${userId} ${query}`)).size).toBe(answers.length);
  });

  test.each(Object.entries(MEASURES))('%s stays above its floor and above plain FTS5', (name, measure) => {
    const reached = mean(answerable().map(({ found, relevant }) => measure(found, relevant)));
    const plain = mean(answerable().map((answer) => measure(answer.plain, answer.relevant)));
    const floor = FLOORS[name as keyof typeof MEASURES];
    expect(reached, `plain FTS5 reaches ${plain.toFixed(4)}\n${describeLosses()}`).toBeGreaterThanOrEqual(floor);
    expect(reached).toBeGreaterThan(plain);
  });

  test('most questions without an answer bring nothing, most others something', () => {
    const isEmpty = ({ floored }: Measured) => floored.length === 0;
    const rightly = mean(unanswerable().map((answer) => Number(isEmpty(answer))));
    const kept = mean(answerable().map((answer) => Number(!isEmpty(answer))));
    const wrong = [
      ...unanswerable()
        .filter((answer) => !isEmpty(answer))
        .map(({ query, floored }) => `${query} → ${floored.length} hits, first ${keys.get(floored[0]!)}`),
      ...answerable()
        .filter(isEmpty)
        .map(({ query }) => `${query} → nothing`),
    ].join('\n');
    expect(rightly, wrong).toBeGreaterThanOrEqual(FLOORS['rightly empty']);
    expect(kept, wrong).toBeGreaterThanOrEqual(FLOORS['not wrongly empty']);
  });

  test('the default floors cost few answers their right memory', () => {
    const lost = answerable().filter(
      ({ found, floored, relevant }) => recallAt(K, floored, relevant) < recallAt(K, found, relevant),
    );
    const reached = mean(answerable().map(({ floored, relevant }) => recallAt(K, floored, relevant)));
    expect(reached).toBeGreaterThanOrEqual(FLOORS['recall@10 with floors']);
    expect(lost.length, lost.map(({ query }) => query).join('\n')).toBeLessThanOrEqual(MAX_LOST);
  });
});

/** Which question misses which memory, or has another one before it. */
function describeLosses(): string {
  return answerable()
    .filter(({ found, relevant }) => reciprocalRank(found, relevant) < 1 || recallAt(K, found, relevant) < 1)
    .map(({ query, found, relevant, reason }) => {
      const places = [...relevant].map(
        (id) => `${keys.get(id)} ${found.includes(id) ? `is ${found.indexOf(id) + 1}.` : 'is missing'}`,
      );
      return `${query} → ${places.join(', ')}; first is ${keys.get(found[0]!) ?? 'nothing'} (${reason})`;
    })
    .join('\n');
}
