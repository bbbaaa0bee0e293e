import { fuseMembers } from '../src/engine/retrieve/fuse-members.ts';
import type { EvaluationQuestion, EvaluationSet, EvaluationUser } from './datasets.ts';
import { type AskOptions, type EvaluatedStore, openEvaluatedStore } from './evaluated-store.ts';

/** A set that is stored once whole and once in parts, each in a file of its own. */
export interface SplitStores extends AsyncDisposable {
  /** Asks the store that has everything. Returns keys of memories, best first. */
  askWhole(question: EvaluationQuestion, options: AskOptions): Promise<string[]>;
  /** Asks each part. Returns the answer of each: keys with scores, best first. */
  askParts(question: EvaluationQuestion, options: AskOptions): Promise<Scored[][]>;
}

/** A memory in the answer of a part. */
interface Scored {
  readonly key: string;
  readonly score: number;
}

/** Stores a set whole and in `count` parts. */
export async function openSplitStores(
  { users }: Pick<EvaluationSet, 'users'>,
  { count, now }: { readonly count: number; readonly now: number },
): Promise<SplitStores> {
  const open = async (members: readonly EvaluationUser[]) => {
    const store = await openEvaluatedStore({ users: members, questions: [] }, { now });
    const keys = new Map(
      members.flatMap(({ userId, memories }) => memories.map(({ key }) => [store.idOf(userId, key), key] as const)),
    );
    return { store, keys };
  };
  const whole = await open(users);
  const parts: Awaited<ReturnType<typeof open>>[] = [];
  for (let part = 0; part < count; part++) parts.push(await open(users.map((user) => partOf(user, { part, count }))));
  const ask = async (
    { store, keys }: { readonly store: EvaluatedStore; readonly keys: ReadonlyMap<string, string> },
    question: EvaluationQuestion,
    options: AskOptions,
  ) => (await store.ask(question, options)).hits.map(({ memory, score }) => ({ key: keys.get(memory.id)!, score }));
  return {
    askWhole: async (question, options) => (await ask(whole, question, options)).map(({ key }) => key),
    askParts: (question, options) => Promise.all(parts.map((part) => ask(part, question, options))),
    async [Symbol.asyncDispose]() {
      for (const { store } of [whole, ...parts]) await store[Symbol.asyncDispose]();
    },
  };
}

/**
 * Returns the memories of a user that belong to one of `count` parts (`part`, from 0): every `count`th session, or
 * every `count`th memory of a user who has a single session.
 */
function partOf(
  { userId, memories }: EvaluationUser,
  { part, count }: { readonly part: number; readonly count: number },
): EvaluationUser {
  const sessions = [...new Set(memories.map(({ sessionId }) => sessionId))];
  const placeOf = new Map(sessions.map((session, place) => [session, place]));
  const isIn = (session: string, place: number) =>
    (sessions.length > 1 ? placeOf.get(session)! : place) % count === part;
  const own = memories.filter(({ sessionId }, place) => isIn(sessionId, place));
  const kept = new Set(own.map(({ key }) => key));
  // What an absent memory was replaced by replaces nothing here.
  return {
    userId,
    memories: own.map(({ supersedes, ...memory }) =>
      supersedes === undefined || !kept.has(supersedes) ? memory : { ...memory, supersedes },
    ),
  };
}

/** Merges the answers of parts as a federated question does. Returns keys, best first. */
export function fused(answers: readonly (readonly Scored[])[], k: number): string[] {
  return fuseMembers(answers, k).map(({ key }) => key);
}

/** Merges the answers of parts by rank alone, to compare with. Returns keys, best first. */
export function interleaved(answers: readonly (readonly Scored[])[], k: number): string[] {
  const placed = answers.flatMap((hits) => hits.map(({ key }, place) => ({ key, place })));
  return placed
    .sort((a, b) => a.place - b.place)
    .slice(0, k)
    .map(({ key }) => key);
}
