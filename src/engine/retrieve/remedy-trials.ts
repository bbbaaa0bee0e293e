/**
 * Tries changed requests: each trial runs the query once more and records what happened to the memory that is
 * explained.
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Json, MemoryQuery } from '../types.ts';
import { inspect, type Inspection, isOutOfBounds } from './inspect.ts';
import type { StageResults } from './stage-results.ts';
import type { QuerySpace, RetrieveContext } from './retrieve-context.ts';
import { runStages } from './retrieve.ts';

/** Greatest number of queries that one explanation runs to find changes with which the memory is returned. */
export const MAX_TRIALS = 32;
/** Number of the `MAX_TRIALS` queries that are reserved for the attempt that changes all limits at once. */
const RESERVED_TRIALS = 6;

/** A request that was run, with what happened to the memory that is explained. */
export interface Explained {
  readonly request: MemoryQuery;
  /** The results of the stages for the original request. */
  readonly recall: StageResults;
  /** What happened to the memory in the stages of the original request. */
  readonly inspection: Inspection;
  readonly signal: AbortSignal | undefined;
}

/** A change of the request with which the query may return the memory. */
export interface Change {
  /** The change as an English sentence for the answer. */
  readonly says: string;
  /**
   * What the change removes: a `condition` of the filter that the memory fails, or a `bound` such as `k`. The sentence
   * of a condition is in the answer even if something else leaves the memory out as well.
   */
  readonly lifts: 'condition' | 'bound';
  /** The change for a program: fields of the HTTP request with their new values; null removes a field. */
  readonly sets: { readonly [field: string]: Json };
}

/** A change together with the changed request. */
export interface Remedy extends Change {
  readonly request: MemoryQuery;
}

/** A request that was run, the results of its stages, and what happened to the memory in them. */
export interface Trial {
  readonly request: MemoryQuery;
  readonly recall: StageResults;
  readonly inspection: Inspection;
}

/**
 * Runs a changed request and records what happened to the memory. Returns undefined if no trial or no work budget is
 * left, and if the memory lacks a tag to which the caller's key is bound at the recorded time of the changed request.
 */
export type Attempt = (changed: MemoryQuery) => Promise<Trial | undefined>;

/**
 * Creates the functions that run trials and count them, at most `MAX_TRIALS` (32).
 * @returns `attempt` runs a trial as long as more than 6 (`RESERVED_TRIALS`) are left; `attemptLast` may use the last
 *   6, too. `notTried` collects the fields, by their names in the HTTP API, of changes that were not tried because the
 *   work budget was used up
 */
export function createTrials(
  context: RetrieveContext,
  { request: asked, recall, inspection, signal }: Explained,
): { readonly attempt: Attempt; readonly attemptLast: Attempt; readonly notTried: ReadonlySet<string> } {
  const embeddings = new Map(recall.vectors.map(({ modelNo, embedding }) => [modelNo, embedding]));
  // No trial asks a language model, or a provider that failed: each would wait for it. Where the request asks for the
  // model, the built-in reranker runs.
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
  const tried = [asked];
  let left = MAX_TRIALS;
  const attemptLast: Attempt = async (request) => {
    if (left === 0) return undefined;
    left -= 1;
    // Between two trials the thread can do other work: notice an aborted request, or answer other requests.
    await nextTurn();
    const ranked: MemoryQuery = request.rerank === 'llm' ? { ...request, rerank: 'builtin' } : request;
    const result = hasEnded() ? undefined : await runStages(trialContext, ranked, signal);
    // The results of a trial that ended early say nothing about the changed request.
    if (result === undefined || result.end !== null) {
      for (const field of newFields(tried, request)) notTried.add(field);
      return undefined;
    }
    tried.push(request);
    const found = context.store.read(() => inspect(context, result, inspection.memory.id));
    return isOutOfBounds(found) ? undefined : { request, recall: result, inspection: found };
  };
  return {
    attempt: async (request) => (left <= RESERVED_TRIALS ? undefined : await attemptLast(request)),
    attemptLast,
    notTried,
  };

  function hasEnded(): boolean {
    return (context.budget?.end ?? null) !== null;
  }
}

/**
 * Lists the fields, by their names in the HTTP API, to which the changed request gives a value that none of the
 * requests in `tried` has.
 */
function newFields(tried: readonly MemoryQuery[], changed: MemoryQuery): string[] {
  const names = Object.keys(Object.assign({}, ...tried, changed) as MemoryQuery) as (keyof MemoryQuery)[];
  return names
    .filter((name) => tried.every((request) => request[name] !== changed[name]))
    .map((name) => (name === 'filter' ? 'filters' : name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`)));
}

/** Tells whether the memory was found and scored in a trial, even if a later stage left it out. */
export function isCandidate({ inspection }: Trial): boolean {
  return (
    inspection.outcome !== 'no_match' && inspection.outcome !== 'not_a_candidate' && inspection.outcome !== 'filtered'
  );
}
