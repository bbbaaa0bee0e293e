/**
 * Trials of changed requests: each runs the stages once more and inspects what they did with the memory.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Json, MemoryQuery } from '../types.ts';
import { inspect, type Inspection } from './inspect.ts';
import type { Recall } from './recall.ts';
import type { QuerySpace, RetrieveContext } from './retrieve-context.ts';
import { recallMemories } from './retrieve.ts';

/** Most queries that one explanation runs to find changes of the request that bring the memory back. */
export const MAX_TRIALS = 32;
/** Number of these queries that are kept for changing everything at once. */
const TRIALS_KEPT = 6;

/** A request that has run, and the memory whose outcome is explained. */
export interface Explained {
  readonly request: MemoryQuery;
  /** The results of the stages for the unchanged request. */
  readonly recall: Recall;
  /** The inspection of the memory after these stages. */
  readonly inspection: Inspection;
  readonly signal: AbortSignal | undefined;
}

/** A change of the request that may bring the memory back. */
export interface Change {
  /** The change as a sentence for a person. */
  readonly says: string;
  /**
   * The kind of obstacle that the change lifts: a condition that the memory fails, or a bound. A condition is worth
   * naming even where something else keeps the memory out as well.
   */
  readonly lifts: 'condition' | 'bound';
  /** The change for a program: the request's fields with their new values; null removes a field. */
  readonly sets: { readonly [field: string]: Json };
}

/** A change together with the changed request. */
export interface Remedy extends Change {
  readonly request: MemoryQuery;
}

/** A request, what the stages found for it, and what they did with the memory. */
export interface Trial {
  readonly request: MemoryQuery;
  readonly recall: Recall;
  readonly inspection: Inspection;
}

/** Runs a changed request and inspects the memory; undefined once the allowed trials or the work budget are used up. */
export type Attempt = (changed: MemoryQuery) => Promise<Trial | undefined>;

/**
 * Creates the functions that run trials and count them.
 * @returns `attempt` keeps `TRIALS_KEPT` trials in reserve; `attemptLast` may use these, too. `notTried` holds the
 *   fields, by their names in the HTTP API, of the changes that were not tried because the work budget had ended
 */
export function createTrials(
  context: RetrieveContext,
  { request: asked, recall, inspection, signal }: Explained,
): { readonly attempt: Attempt; readonly attemptLast: Attempt; readonly notTried: ReadonlySet<string> } {
  const embeddings = new Map(recall.vectors.map(({ modelNo, embedding }) => [modelNo, embedding]));
  // No trial asks a language model, or a provider that failed: each would wait for it.
  const trialContext: RetrieveContext = {
    ...context,
    get store() {
      return context.store;
    },
    get index() {
      return context.index;
    },
    languageModel: null,
    embedQuery: embedOnce(context),
    furtherSpaces: (context.furtherSpaces ?? []).map((space) => ({
      ...space,
      get index() {
        return space.index;
      },
      embedQuery: embedOnce(space),
    })),
  };
  function embedOnce(space: QuerySpace): QuerySpace['embedQuery'] {
    return async (text, abort) =>
      embeddings.get(space.modelNo ?? NaN) ?? (recall.degraded ? null : await space.embedQuery(text, abort));
  }
  const notTried = new Set<string>();
  let left = MAX_TRIALS;
  const attemptLast: Attempt = async (request) => {
    if (left === 0) return undefined;
    left -= 1;
    // The thread can do something else between two trials: take in that nobody waits any more, or answer others.
    await nextTurn();
    const tried = hasEnded() ? undefined : await recallMemories(trialContext, request, signal);
    // What a trial found until the work ended says nothing about the changed request.
    if (tried === undefined || tried.end !== null) {
      for (const field of changedFields(asked, request)) notTried.add(field);
      return undefined;
    }
    return {
      request,
      recall: tried,
      inspection: context.store.read(() => inspect(context, tried, inspection.memory.id)),
    };
  };
  return {
    attempt: async (request) => (left <= TRIALS_KEPT ? undefined : await attemptLast(request)),
    attemptLast,
    notTried,
  };

  function hasEnded(): boolean {
    return (context.budget?.end ?? null) !== null;
  }
}

/** Lists the fields of a request that differ from those of another, by their names in the HTTP API. */
function changedFields(asked: MemoryQuery, changed: MemoryQuery): string[] {
  const names = Object.keys({ ...asked, ...changed }) as (keyof MemoryQuery)[];
  return names
    .filter((name) => asked[name] !== changed[name])
    .map((name) => (name === 'filter' ? 'filters' : name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`)));
}

/** Whether the memory was found and scored in a trial, even if a later stage left it out. */
export function isCandidate({ inspection }: Trial): boolean {
  return (
    inspection.outcome !== 'no_match' && inspection.outcome !== 'not_a_candidate' && inspection.outcome !== 'filtered'
  );
}
