/**
 * Variants of evaluation questions, as people ask them: among other sentences, with line breaks, two questions at once.
 */
import { createRandom } from '../src/engine/random.ts';
import type { EvaluationQuestion, EvaluationSet } from './datasets.ts';
import type { Asked } from './evaluated-store.ts';

export const VARIANTS = ['clean', 'before', 'after', 'around', 'wrapped', 'joined'] as const;
export type Variant = (typeof VARIANTS)[number];

/** Number of sentences that are put beside a question in the variants `before`, `after` and `around`. */
const NOISE_SENTENCES = 4;
const MAX_NOISE_CHARACTERS = 240;
/** Width at which the variant `wrapped` breaks lines, in characters. */
const WRAP_WIDTH = 60;
const SEED = 31;

/**
 * The questions of a set in one variant; equal sets give equal questions. `joined` asks each question together with the
 * next one of the same user and expects the answers of both; questions without an answer stay unchanged.
 * @param strangers sentences of other sets, for a set with one user
 */
export function questionsOf(
  set: EvaluationSet,
  variant: Variant,
  strangers: readonly string[],
): readonly EvaluationQuestion[] {
  const random = createRandom(SEED);
  const noiseFor = noiseOf(set, strangers);
  return set.questions.map((question, place) => {
    const noise = Array.from({ length: NOISE_SENTENCES }, () => noiseFor(question.userId, random));
    const half = NOISE_SENTENCES / 2;
    switch (variant) {
      case 'clean':
        return question;
      case 'before':
        return { ...question, query: [...noise, question.query].join(' ') };
      case 'after':
        return { ...question, query: [question.query, ...noise].join(' ') };
      case 'around':
        return { ...question, query: [...noise.slice(0, half), question.query, ...noise.slice(half)].join(' ') };
      case 'wrapped':
        return { ...question, query: wrap(question.query) };
      case 'joined':
        return join(question, nextOf(set.questions, place));
    }
  });
}

/** Questions of other users of the set, put to each user; nearly none of them has an answer there. */
export function otherUsersQuestions({ users, questions }: EvaluationSet, count: number): Asked[] {
  if (users.length < 2) return [];
  const step = Math.max(1, questions.length / count);
  return Array.from({ length: Math.min(count, questions.length) }, (_, place) => {
    const { userId, query } = questions[Math.floor(place * step)]!;
    const others = users.filter((user) => user.userId !== userId);
    return { userId: others[place % others.length]!.userId, query };
  });
}

/** Number of questions about other subjects that a set is asked. */
const FOREIGN_QUESTIONS = 100;

/**
 * At most 100 questions of other sets, put to the users of a set in turn. The right answer to them is empty.
 * @param strangers the questions of the other sets
 */
export function foreignQuestions({ users }: EvaluationSet, strangers: readonly EvaluationQuestion[]): Asked[] {
  const step = Math.max(1, strangers.length / FOREIGN_QUESTIONS);
  return Array.from({ length: Math.min(FOREIGN_QUESTIONS, strangers.length) }, (_, place) => ({
    userId: users[place % users.length]!.userId,
    query: strangers[Math.floor(place * step)]!.query,
  }));
}

/** Statements of other users; for a set with one user, sentences of other sets. */
function noiseOf(
  { users }: EvaluationSet,
  strangers: readonly string[],
): (userId: string, random: () => number) => string {
  const texts = users.flatMap(({ userId, memories }) => memories.map(({ content }) => ({ userId, content })));
  return (userId, random) => {
    const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)]!;
    if (users.length < 2) return asStatement(pick(strangers));
    let picked = pick(texts);
    while (picked.userId === userId) picked = pick(texts);
    return asStatement(picked.content);
  };
}

/** Turns a text into a statement that ends in a full stop, so that it contains no question. */
function asStatement(text: string): string {
  const line = text.replace(/\s+/g, ' ').replaceAll(/[?？]/g, ',').slice(0, MAX_NOISE_CHARACTERS).trim();
  return /[.。!！]$/.test(line) ? line : `${line}${/\p{Script=Han}$/u.test(line) ? '。' : '.'}`;
}

function wrap(text: string): string {
  let width = 0;
  return text.replaceAll(/\s+|\S+/g, (piece) => {
    const isBlank = piece.trim() === '';
    if (isBlank && width >= WRAP_WIDTH) {
      width = 0;
      return '\n';
    }
    width += piece.length;
    return isBlank ? ' ' : piece;
  });
}

function nextOf(questions: readonly EvaluationQuestion[], place: number): EvaluationQuestion | undefined {
  const next = questions[place + 1];
  return next !== undefined && next.userId === questions[place]!.userId && next.relevant.size > 0 ? next : undefined;
}

function join(question: EvaluationQuestion, next: EvaluationQuestion | undefined): EvaluationQuestion {
  if (next === undefined || question.relevant.size === 0) return question;
  return {
    ...question,
    query: `${question.query} ${next.query}`,
    relevant: new Set([...question.relevant, ...next.relevant]),
  };
}
