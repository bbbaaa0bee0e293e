import type { EvaluationSet } from '../../../bench/datasets.ts';

/** One user's memories in one language, with questions in the same language, written for this project. */
export interface LanguageSet {
  /** ISO 639-1, in small letters. */
  readonly language: string;
  readonly memories: readonly (readonly [key: string, content: string])[];
  /** Each question with the keys of the memories that hold its answer. */
  readonly questions: readonly (readonly [query: string, relevant: readonly string[]])[];
  /** Questions about matters that appear nowhere in the memories. */
  readonly unanswerable: readonly string[];
}

/**
 * Makes one set of all languages, in which each language is a user of its own, as in a service with users of several
 * countries.
 */
export function evaluationSetOf(sets: readonly LanguageSet[]): EvaluationSet {
  return {
    name: 'languages',
    users: sets.map(({ language, memories }) => ({
      userId: language,
      memories: memories.map(([key, content]) => ({ key, sessionId: '', content })),
    })),
    questions: sets.flatMap(({ language, questions, unanswerable }) => [
      ...questions.map(([query, relevant]) => ({ userId: language, query, relevant: new Set(relevant) })),
      ...unanswerable.map((query) => ({ userId: language, query, relevant: new Set<string>() })),
    ]),
  };
}
