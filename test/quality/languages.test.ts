import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EvaluatedStore, openEvaluatedStore } from '../../bench/evaluated-store.ts';
import { recallAt } from '../../bench/metrics.ts';
import { questionsOf, type Variant } from '../../bench/variants.ts';
import { LANGUAGE_SETS } from './languages/all.ts';
import { evaluationSetOf } from './languages/language-set.ts';
import { OWN_SET } from './own-set.ts';

/**
 * The default floor in ten languages, each a user of one file: it must not throw answers away, whatever the language,
 * and what is asked in another language must bring nothing.
 */
const SET = evaluationSetOf(LANGUAGE_SETS);
const K = 10;
/** Questions of 40 that may stay without an answer. */
const MAX_WRONGLY_EMPTY = 1;
/** What the floor may cost of recall@10, as a share of the questions: that of the Chinese set was .05. */
const MAX_RECALL_LOST = 0.05;

let store: EvaluatedStore;
beforeAll(async () => {
  store = await openEvaluatedStore(SET, { now: Date.UTC(2025, 5, 1) });
});
afterAll(() => store[Symbol.asyncDispose]());

async function answersIn(language: string, variant: Variant) {
  const questions = questionsOf({ ...SET, questions: store.questions }, variant, []).filter(
    ({ userId, relevant }) => userId === language && relevant.size > 0,
  );
  const answers = [];
  for (const question of questions) {
    const ids = async (options: object) =>
      (await store.ask(question, { ...options, k: K })).hits.map(({ memory }) => memory.id);
    const [floored, all] = [await ids({}), await ids({ minScore: 0 })];
    answers.push({ question, floored, all });
  }
  return answers;
}

const LANGUAGES = LANGUAGE_SETS.map(({ language }) => language);

describe.each(LANGUAGES)('%s', (language) => {
  test('the set is what it claims to be', () => {
    const { memories, questions, unanswerable } = LANGUAGE_SETS.find((set) => set.language === language)!;
    expect([memories.length, questions.length, unanswerable.length]).toEqual([60, 40, 20]);
    expect(new Set(memories.map(([key]) => key)).size).toBe(memories.length);
  });

  test('the default floor empties no answer and takes next to nothing from the others', async () => {
    const answers = await answersIn(language, 'clean');
    const empty = answers.filter(({ floored }) => floored.length === 0).map(({ question }) => question.query);
    expect(empty.length, empty.join('\n')).toBeLessThanOrEqual(MAX_WRONGLY_EMPTY);
    const lost = answers.reduce(
      (sum, { question: { relevant }, floored, all }) =>
        sum + recallAt(K, all, relevant) - recallAt(K, floored, relevant),
      0,
    );
    expect(lost / answers.length).toBeLessThanOrEqual(MAX_RECALL_LOST);
  });

  test('questions whose lines are wrapped have the same answers', async () => {
    const [clean, wrapped] = [await answersIn(language, 'clean'), await answersIn(language, 'wrapped')];
    for (const [place, { question, floored }] of wrapped.entries())
      expect(floored, question.query).toEqual(clean[place]!.floored);
  });
});

test('questions in other languages about other matters bring nothing', async () => {
  const foreign = OWN_SET.questions.filter(({ query }) => /^[\x20-\x7e]+$/.test(query));
  const others = LANGUAGES.filter((language) => ['ar', 'ja', 'ru', 'th', 'tr', 'zh'].includes(language));
  const answered: string[] = [];
  for (const [place, { query }] of foreign.entries()) {
    const userId = others[place % others.length]!;
    const { hits } = await store.ask({ userId, query }, { k: K });
    if (hits.length > 0) answered.push(`${userId}: ${query}`);
  }
  expect(foreign.length).toBeGreaterThan(50);
  expect(answered.length / foreign.length, answered.join('\n')).toBeLessThanOrEqual(0.05);
});
