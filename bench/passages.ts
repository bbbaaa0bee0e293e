import type { EvaluationMemory, EvaluationSet, EvaluationUser } from './datasets.ts';

/**
 * Joins up to `turns` consecutive memories of a session to one, which makes a set of long texts of a set of short ones.
 * The passages that hold a relevant memory are relevant.
 * @param turns 2 or more
 */
export function passagesOf({ name, users, questions }: EvaluationSet, turns: number): EvaluationSet {
  const passageOf = new Map<string, string>();
  const nameOf = (userId: string, key: string) => JSON.stringify([userId, key]);
  const joined = users.map(({ userId, memories }): EvaluationUser => {
    const passages = groupsOf(memories, turns).map((group) => {
      for (const { key } of group) passageOf.set(nameOf(userId, key), group[0]!.key);
      return { ...group[0]!, content: group.map(({ content }) => content).join('\n') };
    });
    return { userId, memories: passages };
  });
  return {
    name: `${name} passages`,
    users: joined,
    questions: questions.map((question) => ({
      ...question,
      relevant: new Set([...question.relevant].map((key) => passageOf.get(nameOf(question.userId, key)) ?? key)),
    })),
  };
}

/** Groups consecutive memories of one session, `turns` each; a session may end with a smaller group. */
function groupsOf(memories: readonly EvaluationMemory[], turns: number): (readonly EvaluationMemory[])[] {
  const groups: EvaluationMemory[][] = [];
  for (const memory of memories) {
    const last = groups.at(-1);
    if (last !== undefined && last.length < turns && last[0]!.sessionId === memory.sessionId) last.push(memory);
    else groups.push([memory]);
  }
  return groups;
}
