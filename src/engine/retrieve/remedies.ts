import { estimateTokens } from '../text/tokens.ts';
import { type AsOf, type Json, type Memory, type MemoryFilter, type MemoryQuery, QUERY_LIMITS } from '../types.ts';
import { inspect, type Seen } from './inspect.ts';
import type { CompleteQuery } from './options.ts';
import type { Recall } from './recall.ts';
import { type QuerySpace, recallMemories, type RetrieveContext } from './retrieve.ts';

export interface Remedies {
  readonly remedies: readonly string[];
  readonly changes: { readonly [field: string]: Json } | null;
}

/** Queries that may be asked to find out what helps, and changes that may be needed together. */
export const TRIALS_MOST = 32;
/** Of these queries so many are kept for asking for everything at once. */
const TRIALS_KEPT = 6;
const CHANGES_MOST = 8;
/** The greatest that a request may ask for. */
const { k: K_MOST, candidates: CANDIDATES_MOST, hops: HOPS_MOST, tokenBudget: TOKENS_MOST } = QUERY_LIMITS;

export interface Explained {
  readonly request: MemoryQuery;
  /** What the request as it is led to. */
  readonly recall: Recall;
  readonly seen: Seen;
  readonly signal: AbortSignal | undefined;
}

/** A change of the request, as a sentence and for a program. */
interface Change {
  readonly says: string;
  /** A condition that the memory fails is worth naming also where more than that keeps it out. */
  readonly lifts: 'condition' | 'bound';
  readonly sets: { readonly [field: string]: Json };
}

/** A change, done. */
interface Remedy extends Change {
  readonly request: MemoryQuery;
}

/** A request and what it did with the memory. */
interface Trial {
  readonly request: MemoryQuery;
  readonly recall: Recall;
  readonly seen: Seen;
}

/** Asks a changed request; undefined once there were too many. */
type Try = (changed: MemoryQuery) => Promise<Trial | undefined>;

/**
 * Takes away one obstacle after the other, from the filter to the last place, until the memory comes back. Where the next one cannot be
 * told, for one change alone shows no gain, asks for everything at once and takes back what was not needed.
 */
export async function findRemedies(context: RetrieveContext, explained: Explained): Promise<Remedies> {
  const { attempt, attemptLast } = trials(context, explained);
  const { request, recall, seen } = explained;
  // By the fields that they change: a later change of the same field takes the place of an earlier one.
  const found = new Map<string, Change>();
  let now: Trial = { request, recall, seen };
  for (let step = 0; now.seen.outcome !== 'returned'; step += 1) {
    const remedy = step < CHANGES_MOST ? await remedyFor(now, recall.query, attempt) : undefined;
    const next = remedy && (await attempt(remedy.request));
    if (remedy === undefined || next === undefined) {
      const together = await widenAll(now, attemptLast);
      if (together !== undefined) {
        for (const widened of together) found.set(Object.keys(widened.sets).join(' '), widened);
        break;
      }
      const hidden = [...found.values()].filter(({ lifts }) => lifts === 'condition').map(({ says }) => says);
      return { remedies: [...hidden, ...reasons(now, explained)], changes: null };
    }
    found.set(Object.keys(remedy.sets).join(' '), remedy);
    now = next;
  }
  const remedies = [...found.values()];
  return {
    remedies: remedies.map(({ says }) => says),
    changes: Object.assign({}, ...remedies.map(({ sets }) => sets)) as Remedy['sets'],
  };
}

/** @returns `attemptLast` may use up all that is left */
function trials(
  context: RetrieveContext,
  { recall, seen, signal }: Explained,
): { readonly attempt: Try; readonly attemptLast: Try } {
  const known = new Map(recall.vectors.map(({ modelNo, embedding }) => [modelNo, embedding]));
  // A provider that failed is not asked again, nor is a language model: each trial would wait for it.
  const trialContext: RetrieveContext = {
    ...context,
    get store() {
      return context.store;
    },
    get index() {
      return context.index;
    },
    languageModel: null,
    embedQuery: askOnce(context),
    furtherSpaces: (context.furtherSpaces ?? []).map((space) => ({
      ...space,
      get index() {
        return space.index;
      },
      embedQuery: askOnce(space),
    })),
  };
  function askOnce(space: QuerySpace): QuerySpace['embedQuery'] {
    return async (text, abort) =>
      known.get(space.modelNo ?? NaN) ?? (recall.degraded ? null : await space.embedQuery(text, abort));
  }
  let left = TRIALS_MOST;
  const attemptLast: Try = async (request) => {
    if (left === 0) return undefined;
    left -= 1;
    const tried = await recallMemories(trialContext, request, signal);
    return { request, recall: tried, seen: context.store.read(() => inspect(context, tried, seen.memory.id)) };
  };
  return {
    attempt: async (request) => (left <= TRIALS_KEPT ? undefined : await attemptLast(request)),
    attemptLast,
  };
}

/** @param asked the request as it was sent, with its defaults: what a remedy says it was */
async function remedyFor(now: Trial, asked: CompleteQuery, attempt: Try): Promise<Remedy | undefined> {
  const { request, recall, seen } = now;
  switch (seen.outcome) {
    case 'returned':
      return undefined;
    case 'filtered':
      return passFilter(request, seen, attempt);
    case 'superseded':
      return {
        says:
          seen.supersededBy === null
            ? 'it is superseded, and what took its place does not pass the filters: set deep_recall to true'
            : `superseded by ${seen.supersededBy}: set deep_recall to true`,
        lifts: 'condition',
        sets: { deep_recall: true },
        request: { ...request, deepRecall: true },
      };
    case 'below_min_score': {
      const minScore = roundedDown(seen.candidate!.score);
      return {
        says: `lower min_score to ${minScore} or less; it was ${asked.minScore}`,
        lifts: 'bound',
        sets: { min_score: minScore },
        request: { ...request, minScore },
      };
    }
    case 'below_relative_floor': {
      const relativeFloor = roundedDown(seen.candidate!.rawScore / recall.candidates[0]!.rawScore);
      return {
        says: `lower relative_floor to ${relativeFloor} or less; it was ${asked.relativeFloor}`,
        lifts: 'bound',
        sets: { relative_floor: relativeFloor },
        request: { ...request, relativeFloor },
      };
    }
    case 'document_limit':
      return {
        says: 'other hits of its document came back: set per_document to 0',
        lifts: 'bound',
        sets: { per_document: 0 },
        request: { ...request, perDocument: 0 },
      };
    case 'kind_limit':
      return {
        says: 'as many hits of its kind came back as top_k allows: remove top_k',
        lifts: 'bound',
        sets: { top_k: null },
        request: { ...request, topK: undefined },
      };
    case 'over_budget':
      return widenBudget(now, asked, attempt);
    case 'beyond_k':
      return raiseK(now, attempt);
    case 'no_match':
    case 'not_a_candidate':
      return (await raiseK(now, attempt)) ?? (await lookFurther(now, attempt));
  }
}

// ── The filter ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** One condition at a time; the next trial tells the rest. */
async function passFilter(request: MemoryQuery, seen: Seen, attempt: Try): Promise<Remedy | undefined> {
  const { failedFilters, memory } = seen;
  const [name] = failedFilters;
  const without = (says: string, fields: readonly string[], change: Partial<MemoryFilter>): Remedy => ({
    says,
    lifts: 'condition',
    sets: Object.fromEntries(fields.map((field) => [field, null])),
    request: { ...request, filter: { ...request.filter, ...change } },
  });
  switch (name) {
    case 'filters.sessions':
      return without('remove filters.sessions', [name], { sessionIds: undefined });
    case 'filters.types':
      return without('remove filters.types', [name], { types: undefined });
    case 'filters.external_ids':
      return without('remove filters.external_ids', [name], { externalIds: undefined });
    case 'filters.tags':
      return without('remove filters.tags', [name], { tags: undefined });
    case 'filters.sectors':
      return without('remove filters.sectors (and filters.sector)', [name, 'filters.sector'], { sectors: undefined });
    case 'filters.event_time':
      return without('remove filters.event_time', [name], { eventFrom: undefined, eventTo: undefined });
    case 'filters.created_at':
      return without(
        'remove filters.created_at (and startTime, endTime, which mean the same)',
        [name, 'startTime', 'endTime', 'filters.startTime', 'filters.endTime'],
        { createdFrom: undefined, createdTo: undefined },
      );
    case 'filters.statuses': {
      const statuses = [...(request.filter.statuses ?? []), memory.status];
      return {
        says: `it is ${memory.status}: add that to filters.statuses`,
        lifts: 'condition',
        sets: { 'filters.statuses': statuses },
        request: { ...request, filter: { ...request.filter, statuses } },
      };
    }
    case 'status':
      return {
        says: `it is ${memory.status}: set deep_recall to true`,
        lifts: 'condition',
        sets: { deep_recall: true },
        request: { ...request, deepRecall: true },
      };
    case 'validity':
    case 'as_of.valid':
      return lookBack(request, seen, attempt);
    case 'as_of.recorded':
      return setAsOf(
        request,
        { ...request.asOf, recorded: memory.createdAt },
        `it was stored later: set as_of.recorded to ${memory.createdAt}`,
      );
    default:
      return name === undefined ? undefined : withoutMetadata(request, name);
  }
}

const METADATA = 'filters.metadata.';

function withoutMetadata(request: MemoryQuery, name: string): Remedy | undefined {
  if (!name.startsWith(METADATA)) return undefined;
  const key = name.slice(METADATA.length);
  const metadata = Object.fromEntries(Object.entries(request.filter.metadata ?? {}).filter(([other]) => other !== key));
  return {
    says: `remove ${name}`,
    lifts: 'condition',
    sets: { [name]: null },
    request: { ...request, filter: { ...request.filter, metadata } },
  };
}

/**
 * To the first moment at which it had happened and held, as far as was recorded then; where it never did, to what was recorded at other
 * times: today, and before each of its last changes.
 */
async function lookBack(request: MemoryQuery, seen: Seen, attempt: Try): Promise<Remedy | undefined> {
  const holds = async (asOf: AsOf | undefined) => {
    const tried = await attempt({ ...request, asOf });
    return tried !== undefined && !tried.seen.failedFilters.some((name) => TIME_CONDITIONS.has(name));
  };
  const valid = firstHeld(seen.memory);
  if (valid !== null && (await holds({ ...request.asOf, valid })))
    return setAsOf(request, { ...request.asOf, valid }, `it did not hold then: set as_of.valid to ${valid}`);
  const times = [undefined, ...seen.changedAt.map((at) => at - 1)].filter(
    (at) => at !== request.asOf?.recorded && (at === undefined || at >= seen.memory.createdAt),
  );
  for (const recorded of times) {
    const known = await attempt({ ...request, asOf: recorded === undefined ? undefined : { recorded } });
    const moment = known === undefined ? null : firstHeld(known.seen.memory);
    if (moment === null) continue;
    const asOf: AsOf = { valid: moment, ...(recorded === undefined ? {} : { recorded }) };
    const says = `it did not hold as recorded then: set as_of.valid to ${moment} and ${recorded === undefined ? 'remove as_of.recorded' : `as_of.recorded to ${recorded}`}`;
    if (await holds(asOf)) return setAsOf(request, asOf, says);
  }
  return undefined;
}

const TIME_CONDITIONS: ReadonlySet<string> = new Set(['validity', 'as_of.valid', 'as_of.recorded']);

/** null for what ended before it happened. */
function firstHeld({ validFrom, validTo, eventTime }: Memory): number | null {
  const first = Math.max(validFrom ?? -Infinity, eventTime);
  return validTo !== null && first >= validTo ? null : first;
}

function setAsOf(request: MemoryQuery, asOf: AsOf, says: string): Remedy {
  const { valid, recorded } = asOf;
  return {
    says,
    lifts: 'condition',
    sets: { as_of: { ...(valid === undefined ? {} : { valid }), ...(recorded === undefined ? {} : { recorded }) } },
    request: { ...request, asOf },
  };
}

// ── Places ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The least `k` that brings it back, or the greatest if that at least makes it a candidate that another change helps. */
async function raiseK({ request, seen }: Trial, attempt: Try): Promise<Remedy | undefined> {
  if (request.k >= K_MOST) return undefined;
  const returnsWith = async (places: readonly number[]) => {
    for (const k of places) {
      if (k <= request.k || k >= K_MOST) continue;
      if ((await attempt({ ...request, k }))?.seen.outcome === 'returned') return asK(request, k);
    }
    return undefined;
  };
  // What is a candidate depends on k as well, so that its place with one k need not be its place with another.
  const near = seen.rank === null ? undefined : await returnsWith([seen.rank, seen.rank + 10, 2 * seen.rank]);
  if (near !== undefined) return near;
  const most = await attempt({ ...request, k: K_MOST });
  if (most === undefined) return undefined;
  const place = placeOf(most);
  if (place === 0) {
    const helps = !['beyond_k', 'no_match', 'not_a_candidate'].includes(most.seen.outcome);
    return helps && seen.outcome === 'beyond_k' ? asK(request, K_MOST) : undefined;
  }
  return (await returnsWith([place, place + 5, place + 20, 2 * place])) ?? asK(request, K_MOST);
}

function asK(request: MemoryQuery, k: number): Remedy {
  return { says: `raise k to ${k}`, lifts: 'bound', sets: { k }, request: { ...request, k } };
}

/** From 1; 0 if it is not among the hits. */
function placeOf({ recall, seen }: Trial): number {
  return recall.packing.packed.findIndex(({ memory }) => memory.id === seen.memory.id) + 1;
}

/** Room for all hits before it and for itself. */
async function widenBudget({ request }: Trial, asked: CompleteQuery, attempt: Try): Promise<Remedy | undefined> {
  const unbounded = await attempt({ ...request, tokenBudget: TOKENS_MOST });
  if (unbounded === undefined) return undefined;
  const before = unbounded.recall.packing.packed.slice(0, placeOf(unbounded));
  const tokens = before.reduce((sum, { memory }) => sum + estimateTokens(memory.content), 0);
  const least = request.tokenBudget ?? asked.tokenBudget ?? 0;
  const raiseTo = (tokenBudget: number): Remedy => ({
    says:
      asked.tokenBudget === undefined
        ? `others fill the text that is made without a token_budget: set it to ${tokenBudget}`
        : `token_budget of ${asked.tokenBudget} was full: raise it to ${tokenBudget}`,
    lifts: 'bound',
    sets: { token_budget: tokenBudget },
    request: { ...request, tokenBudget },
  });
  // As text for a prompt the same hits take more.
  for (const factor of tokens > least ? [1, 1.25, 2, 4] : [2, 4]) {
    const remedy = raiseTo(Math.min(TOKENS_MOST, Math.ceil(Math.max(tokens, least) * factor)));
    const tried = await attempt(remedy.request);
    if (tried !== undefined && tried.seen.outcome !== 'over_budget') return remedy;
  }
  return raiseTo(TOKENS_MOST);
}

// ── Candidates ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** Longer lists, the other way to search, further links: the first that makes it a candidate at all. */
async function lookFurther({ request, recall: { query } }: Trial, attempt: Try): Promise<Remedy | undefined> {
  const works = async (remedy: Remedy) => {
    const tried = await attempt(remedy.request);
    return tried !== undefined && isCandidate(tried) ? tried : undefined;
  };
  const widest = await attempt({ ...request, kSparse: CANDIDATES_MOST, kDense: CANDIDATES_MOST });
  if (widest !== undefined && isCandidate(widest)) {
    const { lexical, dense } = widest.recall;
    const placeIn = (hits: readonly { readonly seq: number }[]) =>
      hits.findIndex(({ seq }) => seq === widest.seen.candidate?.row.seq) + 1;
    const sparse = (kSparse: number): Remedy => ({
      says: `raise k_sparse to ${kSparse}`,
      lifts: 'bound',
      sets: { k_sparse: kSparse },
      request: { ...request, kSparse },
    });
    const near = (kDense: number): Remedy => ({
      says: `raise k_dense to ${kDense}`,
      lifts: 'bound',
      sets: { k_dense: kDense },
      request: { ...request, kDense },
    });
    const [word, vector] = [placeIn(lexical.hits), placeIn(dense.hits)];
    const tries = [
      ...(word === 0 ? [] : [sparse(word), sparse(CANDIDATES_MOST)]),
      ...(vector === 0 ? [] : [near(vector), near(CANDIDATES_MOST)]),
    ];
    for (const remedy of tries) if (await works(remedy)) return remedy;
  }
  const further: Remedy[] = [];
  if (request.vectorWeight === 0 || request.vectorWeight === 1) {
    further.push({
      says: `${request.vectorWeight === 0 ? 'vectors' : 'words'} took no part: remove vector_weight`,
      lifts: 'bound',
      sets: { vector_weight: null },
      request: { ...request, vectorWeight: undefined },
    });
  }
  for (let maxHops = query.maxHops + 1; maxHops <= HOPS_MOST; maxHops += 1) {
    further.push({
      says: `raise max_hops to ${maxHops}`,
      lifts: 'bound',
      sets: { max_hops: maxHops },
      request: { ...request, maxHops },
    });
  }
  for (const remedy of further) if (await works(remedy)) return remedy;
  return undefined;
}

function isCandidate({ seen }: Trial): boolean {
  return seen.outcome !== 'no_match' && seen.outcome !== 'not_a_candidate' && seen.outcome !== 'filtered';
}

// ── Everything at once ───────────────────────────────────────────────────────────────────────────────────────────────

/** The changes that are needed together, if all of them bring it back. */
async function widenAll(now: Trial, attempt: Try): Promise<Change[] | undefined> {
  if (now.seen.outcome === 'filtered') return undefined;
  const { request } = now;
  const returns = async (changes: readonly Widening[]) => {
    const changed: MemoryQuery = Object.assign({}, request, ...changes.map(({ change }) => change));
    return (await attempt(changed))?.seen.outcome === 'returned';
  };
  let needed = wideningsOf(now);
  if (needed.length === 0 || !(await returns(needed))) return undefined;
  for (const one of needed) {
    const others = needed.filter((other) => other !== one);
    if (others.length > 0 && (await returns(others))) needed = others;
  }
  return needed;
}

interface Widening extends Change {
  readonly change: Partial<MemoryQuery>;
}

/** Every bound that can be wider, those that are needed least often first. */
function wideningsOf({ request, recall: { query } }: Trial): Widening[] {
  const widenings: (Widening | false)[] = [
    (request.vectorWeight === 0 || request.vectorWeight === 1) && {
      ...bound('remove vector_weight', { vector_weight: null }),
      change: { vectorWeight: undefined },
    },
    query.tokenBudget !== undefined &&
      query.tokenBudget < TOKENS_MOST && {
        ...bound(`raise token_budget to ${TOKENS_MOST}`, { token_budget: TOKENS_MOST }),
        change: { tokenBudget: TOKENS_MOST },
      },
    query.topK !== undefined && { ...bound('remove top_k', { top_k: null }), change: { topK: undefined } },
    query.perDocument > 0 && { ...bound('set per_document to 0', { per_document: 0 }), change: { perDocument: 0 } },
    query.relativeFloor > 0 && {
      ...bound('lower relative_floor to 0', { relative_floor: 0 }),
      change: { relativeFloor: 0 },
    },
    query.minScore > 0 && { ...bound('lower min_score to 0', { min_score: 0 }), change: { minScore: 0 } },
    query.kDense !== CANDIDATES_MOST && {
      ...bound(`raise k_dense to ${CANDIDATES_MOST}`, { k_dense: CANDIDATES_MOST }),
      change: { kDense: CANDIDATES_MOST },
    },
    query.kSparse !== CANDIDATES_MOST && {
      ...bound(`raise k_sparse to ${CANDIDATES_MOST}`, { k_sparse: CANDIDATES_MOST }),
      change: { kSparse: CANDIDATES_MOST },
    },
    query.k < K_MOST && { ...bound(`raise k to ${K_MOST}`, { k: K_MOST }), change: { k: K_MOST } },
  ];
  return widenings.filter((widening) => widening !== false);
}

function bound(says: string, sets: Change['sets']): Change {
  return { says, lifts: 'bound', sets };
}

// ── Where nothing helps ──────────────────────────────────────────────────────────────────────────────────────────────

function reasons({ request, recall, seen }: Trial, { recall: asked }: Explained): string[] {
  const { terms, cosine, memory } = seen;
  const said: string[] = [];
  if (seen.outcome === 'filtered' && TIME_CONDITIONS.has(seen.failedFilters[0]!)) {
    said.push(
      firstHeld(memory) === null
        ? 'it ended before it happened: no as_of reaches it'
        : 'it did not hold then, and no as_of was found that reaches it',
    );
  }
  if (seen.outcome === 'beyond_k') said.push(`${seen.rank! - 1} others are better, and a higher k brings more of them`);
  if (isCandidate({ request, recall, seen })) return said;
  if (seen.outcome === 'filtered') return said;
  if (terms.matched.length + terms.inContext.length === 0) said.push('it shares no word with the query');
  else
    said.push(
      `it shares words with the query (${[...terms.matched, ...terms.inContext].join(', ')}), but many share more or rarer ones`,
    );
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

/** To what can be written in a sentence, without getting higher. */
function roundedDown(value: number): number {
  return Math.max(0, Math.floor(value * 10_000) / 10_000);
}
