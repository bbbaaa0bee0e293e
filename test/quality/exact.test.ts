import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EvaluatedStore, openEvaluatedStore } from '../../bench/evaluated-store.ts';
import type { Cut } from '../../src/engine/types.ts';
import { BELIEF_USERS, EXACT_QUESTIONS, type ExactQuestion } from './beliefs-set.ts';

/**
 * Guards what `cut: exact` reaches on short facts, through the real engine with all other defaults. The floors are a
 * little under what was measured when they were set.
 */
const FLOORS = {
  /** Of 56 answerable questions, those whose answer is the exact set: 51 with the cut, 19 without. */
  exact: 49,
  /** Of 28 questions without an answer, those that bring nothing: 26 with the cut, 3 without. */
  empty: 25,
} as const;

let store: EvaluatedStore;
let keys: ReadonlyMap<string, string>;

beforeAll(async () => {
  const questions = EXACT_QUESTIONS.map(({ userId, query, exact }) => ({ userId, query, relevant: new Set(exact) }));
  store = await openEvaluatedStore({ users: BELIEF_USERS, questions }, { now: Date.UTC(2026, 5, 1) });
  keys = new Map(
    BELIEF_USERS.flatMap(({ userId, memories }) => memories.map(({ key }) => [store.idOf(userId, key), key] as const)),
  );
});
afterAll(() => store[Symbol.asyncDispose]());

async function answer({ userId, query, scope }: ExactQuestion, cut: Cut): Promise<readonly string[]> {
  const filter = { userIds: [userId], ...(scope === undefined ? {} : { tags: [scope] }) };
  const { hits } = await store.tenant.query({ query, k: 10, cut, filter, reinforce: false });
  return hits.map(({ memory }) => keys.get(memory.id)!).sort();
}

/** The questions that are not answered by exactly their memories, each with its answer. */
async function wrongAnswers(questions: readonly ExactQuestion[], cut: Cut): Promise<string[]> {
  const wrong: string[] = [];
  for (const question of questions) {
    const found = await answer(question, cut);
    if (found.join() !== question.exact.toSorted().join()) wrong.push(`${question.query} → ${found.join()}`);
  }
  return wrong;
}

describe('an exact answer', () => {
  const answerable = EXACT_QUESTIONS.filter(({ exact }) => exact.length > 0);
  const unanswerable = EXACT_QUESTIONS.filter(({ exact }) => exact.length === 0);

  test('is what the question asks for and nothing else', async () => {
    expect(answerable.length).toBeGreaterThanOrEqual(55);
    const wrong = await wrongAnswers(answerable, 'exact');
    expect(answerable.length - wrong.length, wrong.join('\n')).toBeGreaterThanOrEqual(FLOORS.exact);
  });

  test('is empty where nothing answers, whatever else is known about who is named', async () => {
    expect(unanswerable.length).toBeGreaterThanOrEqual(28);
    const wrong = await wrongAnswers(unanswerable, 'exact');
    expect(unanswerable.length - wrong.length, wrong.join('\n')).toBeGreaterThanOrEqual(FLOORS.empty);
  });

  test('is a part of the answer without a cut, in the same order', async () => {
    for (const { userId, query } of EXACT_QUESTIONS) {
      const idsOf = async (cut?: Cut) =>
        (await store.ask({ userId, query }, { k: 10, ...(cut === undefined ? {} : { cut }) })).hits.map(
          ({ memory }) => memory.id,
        );
      const [whole, exact, relative] = [await idsOf(), await idsOf('exact'), await idsOf('relative')];
      expect(exact, query).toEqual(whole.filter((id) => exact.includes(id)));
      expect(relative, query).toEqual(whole.slice(0, relative.length));
    }
  });
});
