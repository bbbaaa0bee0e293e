import type { Json, Memory } from '../types.ts';
import type { CompleteQuery } from './options.ts';
import { liftKindLimit, lookFurther, raiseK, widenAll, widenBudget } from './remedy-bounds.ts';
import { firstHeld, passFilter, showSource, TIME_CONDITIONS } from './remedy-filters.ts';
import {
  type Change,
  type Explained,
  isCandidate,
  type Remedy,
  type Trial,
  createTrials,
  type Attempt,
} from './remedy-trials.ts';
import type { RetrieveContext } from './retrieve-context.ts';

/** Changes of a request with which the query returns a memory that it left out. */
export interface Remedies {
  /**
   * One sentence for each change; the query returns the memory if all of the changes are made together. If no change
   * helps: sentences for the conditions of the filter that the memory fails, then the reasons why nothing helps. Empty
   * if the query returns the memory without a change.
   */
  readonly remedies: readonly string[];
  /**
   * The fields of the request that all changes together set, by name, with their new values; null if no change helps,
   * `{}` if none is needed.
   */
  readonly changes: { readonly [field: string]: Json } | null;
  /** Fields of the request whose changes were not tried because the work budget was used up; each once. */
  readonly notTried: readonly string[];
}

/** Greatest number of successive changes of a request that are tried. */
const MAX_CHANGES = 8;

/**
 * Finds changes with which the query returns a memory: removes one obstacle after the other, from the filter to `k`. If
 * no single change helps, or after 8 changes, all possible changes are made at once, and then those that are not needed
 * are undone.
 */
export async function findRemedies(context: RetrieveContext, explained: Explained): Promise<Remedies> {
  const { attempt, attemptLast, notTried } = createTrials(context, explained);
  const { request, recall, inspection } = explained;
  // The key is the fields that a change sets, so that a later change of a field replaces an earlier one.
  const changes = new Map<string, Change>();
  let current: Trial = { request, recall, inspection };
  for (let step = 0; current.inspection.outcome !== 'returned'; step += 1) {
    const remedy = step < MAX_CHANGES ? await remedyFor(current, recall.query, attempt) : undefined;
    const next = remedy && (await attempt(remedy.request));
    if (remedy === undefined || next === undefined) {
      // No wider limit lets a source pass the filter.
      const isHidden = current.inspection.outcome === 'sources_hidden';
      const together = isHidden ? undefined : await widenAll(current, attemptLast);
      if (together !== undefined) {
        for (const widened of together) changes.set(Object.keys(widened.sets).join(' '), widened);
        break;
      }
      const hidden = [...changes.values()].filter(({ lifts }) => lifts === 'condition').map(({ says }) => says);
      return { remedies: [...hidden, ...reasons(current, explained)], changes: null, notTried: [...notTried] };
    }
    changes.set(Object.keys(remedy.sets).join(' '), remedy);
    current = next;
  }
  const remedies = [...changes.values()];
  return {
    remedies: remedies.map(({ says }) => says),
    changes: Object.assign({}, ...remedies.map(({ sets }) => sets)) as Remedy['sets'],
    notTried: [...notTried],
  };
}

/**
 * Finds a change that removes the obstacle of the current trial; undefined if none is found or the memory is returned.
 * @param asked the original request with its defaults; the sentence of a remedy names its values
 */
async function remedyFor(current: Trial, asked: CompleteQuery, attempt: Attempt): Promise<Remedy | undefined> {
  const { request, recall, inspection } = current;
  switch (inspection.outcome) {
    case 'returned':
      return undefined;
    case 'filtered':
      return passFilter(request, inspection, attempt);
    case 'superseded':
      return {
        says:
          inspection.supersededBy === null
            ? 'it is superseded, and what took its place does not pass the filters: set deep_recall to true'
            : `superseded by ${inspection.supersededBy}: set deep_recall to true`,
        lifts: 'condition',
        sets: { deep_recall: true },
        request: { ...request, deepRecall: true },
      };
    case 'sources_hidden':
      return showSource(request, inspection, attempt);
    case 'below_min_score': {
      const minScore = roundedDown(inspection.candidate!.score);
      return {
        says: `lower min_score to ${minScore} or less; it was ${asked.minScore}`,
        lifts: 'bound',
        sets: { min_score: minScore },
        request: { ...request, minScore },
      };
    }
    case 'below_relative_floor': {
      const relativeFloor = roundedDown(inspection.candidate!.rawScore / recall.candidates[0]!.rawScore);
      return {
        says: `lower relative_floor to ${relativeFloor} or less; it was ${asked.relativeFloor}`,
        lifts: 'bound',
        sets: { relative_floor: relativeFloor },
        request: { ...request, relativeFloor },
      };
    }
    case 'not_exact':
    case 'near_duplicate':
    case 'document_limit': {
      const { says, sets, change } = SWITCHES[inspection.outcome];
      return { says, lifts: 'bound', sets, request: { ...request, ...change } };
    }
    case 'kind_limit': {
      const { change, ...remedy } = liftKindLimit(request);
      return { ...remedy, request: { ...request, ...change } };
    }
    case 'over_budget':
      return widenBudget(current, asked, attempt);
    case 'beyond_k':
      return raiseK(current, attempt);
    case 'no_match':
    case 'not_a_candidate':
      return (await raiseK(current, attempt)) ?? (await lookFurther(current, attempt));
  }
}

/** For each outcome that an option causes, the change that switches this option off. */
const SWITCHES = {
  not_exact: {
    says: 'it answers too little of the question by itself: set cut to none',
    sets: { cut: 'none' },
    change: { cut: 'none' },
  },
  near_duplicate: {
    says: 'a hit that says nearly the same came back: set collapse_similar to false',
    sets: { collapse_similar: false },
    change: { collapseSimilar: false },
  },
  document_limit: {
    says: 'other hits of its document came back: set per_document to 0',
    sets: { per_document: 0 },
    change: { perDocument: 0 },
  },
} as const;

/**
 * Amount by which a proposed `min_score` or `relative_floor` stays below the memory's present value. Scores depend on
 * the time, so the value may fall by about this much until a client sends the changed request.
 */
const AGING = 1e-5;

/** Rounds a least score down to four decimals, so that it is short in a sentence and the memory stays above it. */
function roundedDown(value: number): number {
  return Math.max(0, Math.floor((value - AGING) * 10_000) / 10_000);
}

// ── Where nothing helps ──────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Returns sentences that say why no change helps. The list is empty for a candidate that is left out by another limit
 * than `k`, and for a memory that fails a condition of the filter other than one on time.
 */
function reasons({ request, recall, inspection }: Trial, { recall: asked }: Explained): string[] {
  const { terms, cosine, memory } = inspection;
  const said: string[] = [];
  if (inspection.outcome === 'filtered' && TIME_CONDITIONS.has(inspection.failedFilters[0]!)) {
    said.push(
      firstHeld(memory) === null
        ? 'it ended before it happened: no as_of reaches it'
        : 'it did not hold then, and no as_of was found that reaches it',
    );
  }
  if (inspection.outcome === 'beyond_k')
    said.push(`${inspection.rank! - 1} others are better, and a higher k brings more of them`);
  if (inspection.outcome === 'sources_hidden')
    said.push('it was made of other memories, one of which does not pass the filters: ask for those');
  if (isCandidate({ request, recall, inspection })) return said;
  if (inspection.outcome === 'filtered') return said;
  const shared = [...terms.matched, ...terms.inContext];
  if (shared.length === 0) said.push('it shares no word with the query');
  else said.push(`it shares words with the query (${shared.join(', ')}), but many share more or rarer ones`);
  if (asked.degraded) said.push('the embedding provider did not answer: words alone decided');
  else if (recall.vectors.length > 0 && cosine === null) said.push(withoutVector(memory));
  else if (cosine !== null) said.push(`its nearest vector similarity is ${cosine.toFixed(2)}`);
  return said;
}

function withoutVector({ state }: Memory): string {
  switch (state) {
    case 'queued':
      return 'it has no vector yet: it waits for encoding';
    case 'failed':
      return 'it has no vector, as its job failed or was cancelled: retry the job';
    case 'ready':
      return 'it has no vector of the model in use';
  }
}
