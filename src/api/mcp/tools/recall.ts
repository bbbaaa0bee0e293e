import { z } from 'zod';
import {
  DEFAULT_K,
  EngineError,
  FEEDBACK_VERDICTS,
  type FloorReport,
  type MemoryQuery,
  type QueryResult,
  quoteLine,
  shownGist,
} from '../../../engine/index.ts';
import type { TenantCall } from '../../route.ts';
import { isPublicRead } from '../../routes/public-reads.ts';
import { LIMITS } from '../../schemas/value-limits.ts';
import { choice, fraction, givenId, integer, tags, text } from '../../schemas/values.ts';
import { TOKEN_WAIT_MS, waitForWrites } from '../../wait-for-writes.ts';
import { DESTROYS, isoTime, READS, tool } from '../tool.ts';

/** Greatest number of memories in an answer. */
const MAX_LIMIT = 50;
/**
 * Greatest number of tokens of an answer if the call names no `token_budget`: enough for two whole chunks of documents
 * and some memories.
 */
const DEFAULT_TOKENS = 6_000;
/** Greatest length of a title in the results of `search`, in UTF-16 code units. */
const TITLE_CHARACTERS = 120;

const query = text(LIMITS.queryCharacters).min(1, 'must not be empty');

const recallInput = z.strictObject({
  query: query.describe('Question or keywords.'),
  limit: integer(1, MAX_LIMIT).optional().describe(`Greatest number of memories; ${DEFAULT_K} by default.`),
  since: isoTime.optional().describe('Only what happened from this ISO 8601 time on.'),
  until: isoTime.optional().describe('Only what happened before this time.'),
  tags: tags.optional().describe('Only memories with all of these tags.'),
  types: z.array(givenId).max(LIMITS.filterValues).optional().describe('Only these types.'),
  session_id: givenId.optional(),
  as_of: isoTime.optional().describe('Answer with what was valid at this time.'),
  min_score: fraction.optional().describe('Lowest score of a match, 0..1; lower it to see weaker ones.'),
  token_budget: integer(50, 50_000).optional().describe('Greatest number of tokens of the answer; 6000 by default.'),
  token: text(LIMITS.tokenCharacters).optional().describe('Token of a write; recall waits up to 2 s for it.'),
});
type RecallInput = z.output<typeof recallInput>;

/**
 * Makes the tool `recall`, which answers a query with memories.
 * @param isRated true to add the id of this answer in the recall log, for a client that also has the tool `rate_recall`
 */
const recallTool = (isRated: boolean) =>
  tool({
    name: 'recall',
    title: 'Recall memories',
    description:
      'Search long-term memory for facts, preferences, decisions and documents. Call it before answering whenever ' +
      'earlier conversations may matter. Returns quoted memories with ids and dates.',
    needs: 'read',
    limited: 'queries',
    annotations: READS,
    input: recallInput,
    async run(call, input, { signal }) {
      const isUpToDate = input.token === undefined || (await waitForWrites(call, input.token, TOKEN_WAIT_MS));
      const result = await call.tenant.query({ ...toQuery(call, input), format: 'prompt' }, signal);
      const name = isRated && result.hits.length > 0 ? ['', `Recall ${result.recallId}`] : [];
      return [result.rendered?.text ?? '', ...notesOn(result, { call, input, isUpToDate }), ...name].join('\n');
    },
  });

export const recall = recallTool(false);
/**
 * The tool `recall` for a client that also has the tool `rate_recall`: its text names the id under which the answer is
 * logged.
 */
export const ratedRecall = recallTool(true);

export const rateRecall = tool({
  name: 'rate_recall',
  title: 'Rate a recall',
  description: 'Say which memories of a recall were used, useless or wrong, so that ranking can learn from it.',
  needs: 'read',
  limited: 'adds',
  extra: 'feedback',
  // A verdict takes the place of an earlier one.
  annotations: { ...DESTROYS, idempotentHint: true },
  input: z.strictObject({
    recall_id: givenId.describe('Id at the end of the answer of recall.'),
    verdict: choice(FEEDBACK_VERDICTS),
    ids: z.array(givenId).min(1, 'must not be empty').max(MAX_LIMIT).describe('Memory ids.'),
  }),
  async run({ tenant, principal }, { recall_id: id, verdict, ids }) {
    if (isPublicRead(principal)) throw new EngineError('not_found', 'no recall with this id is kept');
    const feedback = await tenant.giveFeedback(id, verdict, ids);
    return `Kept: ${feedback.map((one) => `${one.memoryId} ${one.verdict}`).join(', ')}`;
  },
});

export const explainRecall = tool({
  name: 'explain_recall',
  title: 'Explain a recall',
  description: 'Say why recall does or does not return a memory for the same input, and what would return it.',
  needs: 'read',
  limited: 'queries',
  annotations: READS,
  input: recallInput.omit({ token: true }).extend({ id: givenId.describe('Memory id.') }),
  async run(call, input, { signal }) {
    // The tokens of an answer are counted by its format.
    const explained = await call.tenant.explain({ ...toQuery(call, input), format: 'prompt' }, input.id, signal);
    const { outcome, rank, score, failedFilters, supersededBy, terms, cosine, remedies, changes } = explained;
    const list = (name: string, values: readonly string[]) =>
      values.length === 0 ? [] : [`${name}: ${values.map((value) => quoteLine(value, TITLE_CHARACTERS)).join(', ')}`];
    return [
      `Outcome: ${outcome.replaceAll('_', ' ')}${rank === null ? '' : `, place ${rank}`}` +
        (score === null ? '' : `, score ${score.toFixed(2)}`),
      ...list('Fails', failedFilters),
      ...(supersededBy === null ? [] : [`Superseded by memory ${supersededBy}`]),
      ...list('Words of the query in it', terms.matched),
      ...list('Only in its context', terms.inContext),
      ...list('Missing', terms.missed),
      ...(cosine === null ? [] : [`Similarity ${cosine.toFixed(2)}`]),
      // Remedies name fields of the HTTP API, of which recall has only some.
      ...remedies.map((remedy) => `${changes === null ? 'Note' : 'POST /memory/query would return it'}: ${remedy}`),
    ].join('\n');
  },
});

/**
 * The tool `search`, the first of the two tools that ChatGPT's connectors ask for. Its result is one text of JSON, with
 * titles instead of texts.
 */
export const search = tool({
  name: 'search',
  title: 'Search',
  description: 'Search memories. Returns ids and titles; fetch returns the text.',
  needs: 'read',
  limited: 'queries',
  extra: 'search_fetch',
  annotations: READS,
  input: z.strictObject({ query }),
  async run(call, input, { signal }) {
    const { hits } = await call.tenant.query(toQuery(call, input), signal);
    const results = hits.map(({ memory }) => ({
      id: memory.id,
      title: quoteLine(memory.title || shownGist(memory), TITLE_CHARACTERS),
      url: `cairn://memory/${memory.id}`,
    }));
    return JSON.stringify({ results });
  },
});

function toQuery({ principal }: TenantCall, input: Partial<RecallInput> & { query: string }): MemoryQuery {
  return {
    query: input.query,
    k: input.limit ?? DEFAULT_K,
    filter: {
      sessionIds: input.session_id === undefined ? undefined : [input.session_id],
      types: input.types,
      tags: input.tags,
      eventFrom: input.since,
      eventTo: input.until,
    },
    minScore: input.min_score,
    asOf: input.as_of === undefined ? undefined : { valid: input.as_of },
    tokenBudget: input.token_budget ?? DEFAULT_TOKENS,
    // A query without a key (`OM_PUBLIC_READS`) must not change the tenant's memories, and is not logged.
    ...(isPublicRead(principal) ? { reinforce: false, isLogged: false } : {}),
  };
}

interface Circumstances {
  readonly call: TenantCall;
  readonly input: RecallInput;
  readonly isUpToDate: boolean;
}

/**
 * Returns notes that say why an answer is incomplete, and what was searched if it is empty, so that an empty answer
 * does not look like a failed search. The list is empty if there is nothing to say.
 */
function notesOn(
  { hits, degraded, degradedReasons, isCut, bestNeeds, floor }: QueryResult,
  about: Circumstances,
): string[] {
  const notes = [
    ...(hits.length === 0 ? [`Asked about ${scopeOf(about)}.`] : []),
    ...(floor === undefined ? [] : floorNote(floor)),
    ...(degraded ? [`Degraded (${degradedReasons.join(', ')}): something may be missing; ask again later.`] : []),
    ...(bestNeeds === undefined
      ? []
      : [`The best match does not fit the token_budget: ask again with ${bestNeeds} or more.`]),
    ...(isCut === true ? ['Some memories were too large for this answer; use a smaller limit.'] : []),
    ...(about.isUpToDate
      ? []
      : ['The write behind the token is not finished; its words are searched, not its meaning.']),
  ];
  return notes.length === 0 ? [] : ['', ...notes];
}

function floorNote({ acted, below, minScore, bestBelow }: FloorReport): string[] {
  if (!acted) return [`The floor of ${minScore} was not applied, as it is unclear which sentence asks.`];
  const best = bestBelow === null ? '' : `, best ${bestBelow.toFixed(2)}`;
  return [`Cut by the floor: ${below} (scores under ${minScore}${best}). A lower min_score shows them.`];
}

function scopeOf({ call: { principal }, input }: Circumstances): string {
  const { tags = [], types = [], session_id: session, since, until } = input;
  const day = (time: number) => new Date(time).toISOString().slice(0, 10);
  const parts = [
    principal.userId === undefined ? 'all memories' : `memories of user ${quoteLine(principal.userId, 64)}`,
    ...(tags.length === 0 ? [] : [`tags ${tags.join(', ')}`]),
    ...(types.length === 0 ? [] : [`types ${types.join(', ')}`]),
    ...(session === undefined ? [] : [`session ${session}`]),
    ...(since === undefined ? [] : [`since ${day(since)}`]),
    ...(until === undefined ? [] : [`until ${day(until)}`]),
  ];
  return parts.join('; ');
}
