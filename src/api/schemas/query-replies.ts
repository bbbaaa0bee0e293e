/** Schemas of answers to queries, and of explanations. */
import { z } from 'zod';
import { EDGE_TYPES, FORMATS, OUTCOMES, PROFILES, WEIGHT_NAMES, WORK_ENDS } from '../../engine/index.ts';
import { provenance } from './document-replies.ts';
import { count, storedExample, storedFields, storedMemory, unit, uuid } from './memory-replies.ts';
import { anyObject, type Wire } from './values.ts';

const rank = z.int().min(1);
const weights = z.partialRecord(z.enum(WEIGHT_NAMES), z.number());

// ── Why a hit came back ──────────────────────────────────────────────────────────────────────────────────────────────

/** Schema of the values from which the profile computes the raw score of a match. */
export const features = z
  .strictObject({
    similarity: unit.describe(
      'Relevance by words and vector, divided by that of the best candidate; with `similarity: absolute` as it is, ' +
        'at most 1.',
    ),
    activation: unit.describe(
      'Fused score divided by the best one, or the activation that came over links if that is higher.',
    ),
    waypoint: unit.describe('Activation that came over links; 0 for a direct hit without any.'),
    salience: unit.describe('Salience of the memory, decayed until now.'),
    strength: unit.describe('Strength of the memory, decayed until now.'),
    recency: unit.describe('`e^(−0.05 · days since last_seen_at)`.'),
    retention: unit.describe('`e^(−decay_lambda · days since last_seen_at)`, at least 0.02.'),
    confidence: unit.describe('How sure the memory’s author is that it is true; 1 for certain.'),
  })
  .describe('Values that the formula of the profile uses.');

/** Schema of one factor by which the raw score of a match was multiplied, with the reason. */
export const adjustment = z.strictObject({
  by: z
    .enum(['contradicted', 'superseded', 'status', 'consolidated', 'rerank', 'session', 'model'])
    .describe(
      '`contradicted`: a stronger candidate contradicts the memory; `superseded`: it replaces an older memory that ' +
        'matched; `status`: it is not active; `consolidated`: a memory gathered from it is a candidate, too; ' +
        '`rerank`: the built-in reranker read its text; `session`: other memories of its session match; `model`: a ' +
        'language model ordered the candidates.',
    ),
  factor: z.number().min(0),
  because: z
    .string()
    .exactOptional()
    .describe(
      'The memory that contradicts this one, that it replaces, or that was gathered from it; absent for other reasons.',
    ),
  automatic: z
    .literal(true)
    .exactOptional()
    .describe('The contradiction was found by the form of the texts or by a language model; no client stated it.'),
});

const arrival = z
  .strictObject({
    from: uuid.nullable().describe('The memory before this one on the path; null for a name.'),
    via: z.enum([...EDGE_TYPES, 'entity']),
    entity: z.string().exactOptional().describe('The name; absent for a link.'),
    weight: z.number(),
    hops: count.describe(
      'Number of links from the direct match to this memory; 1 if a name related to one in the query brought it ' +
        '(`via` `entity`).',
    ),
    activation: unit,
  })
  .nullable()
  .describe(
    'The link, or the name related to one in the query (`via` `entity`), from which most activation came; null if ' +
      "there was none, or only links that gave less than the memory's own match.",
  );

/** Schema of the reasons for a match: its ranks by words and by vectors, its activation, features and adjustments. */
export const hitExplanation = z
  .strictObject({
    lexical: z
      .strictObject({ rank, bm25: z.number(), coverage: z.number().min(0) })
      .nullable()
      .describe(
        'Rank and BM25 score (no upper bound) in the search by words; null if it did not find the memory. `coverage` ' +
          'is the share of the query’s words that the memory has, 0 to about 1, in which rare words count more.',
      ),
    dense: z
      .strictObject({ rank, similarity: z.number(), window: count })
      .nullable()
      .describe(
        'Rank and cosine in the search by vectors, and the number, from 0, of the nearest window (a part of at most ' +
          '512 tokens of the text); null if it did not find the memory.',
      ),
    fused: z
      .strictObject({ rank, score: z.number() })
      .nullable()
      .describe(
        'Rank and score in both searches together; null if neither found the memory, so that only links or related ' +
          'names led to it.',
      ),
    arrival,
    profile: z.enum(PROFILES).describe('The profile, whose formula makes `raw_score` from `features` and `weights`.'),
    features,
    weights,
    adjustments: z.array(adjustment).describe('Factors that later stages applied to the raw score.'),
    rerank: z
      .record(z.string(), z.number())
      .nullable()
      .describe('Measurements of the built-in reranker, each in 0..1; null if it did not read this memory.'),
    confidence: unit.describe(
      'How certain it is that the stored memories are about the query at all; the same for all matches.',
    ),
    terms: z
      .array(z.string())
      .describe("The query's terms that stand in the memory or in the two memories just before it in its session."),
  })
  .meta({
    id: 'HitExplanation',
    description: 'Why a query returned a match. Ranks count from 1; a stage that did not find the memory is null.',
  });

const trace = z
  .array(
    z
      .strictObject({
        stage: z.string(),
        ms: z.number().min(0),
        in: z.number(),
        out: z.number(),
        note: z
          .string()
          .exactOptional()
          .describe(
            'The plan of the query, terms that were left out, or the reason why a stage did not run. A key that is ' +
              'bound to a user or tags is not told those of `plan`, `lexical` and `dense`.',
          ),
      })
      .meta({ id: 'StageTrace', examples: [{ stage: 'embed', ms: 1.3, in: 1, out: 1 }] }),
  )
  .describe(
    'The stages in the order in which they ran, with their time and the numbers of memories that went in and came out.',
  );

// ── Answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export const matchExample = {
  ...storedExample,
  score: 0.78,
  raw_score: 0.78,
  path: [storedExample.id],
};

/** Schema of a memory in an answer, with its scores. */
export const match = z
  .strictObject({
    ...storedFields,
    score: unit.describe('Calibrated score, higher is better, comparable between queries; `min_score` applies to it.'),
    raw_score: z
      .number()
      .min(0)
      .describe('Score of the profile times the adjustments; may exceed 1. Matches are sorted by it.'),
    path: z
      .array(uuid)
      .describe(
        'Ids along the links from a direct hit to this memory, its own id last. Only its own id for a direct hit, ' +
          'and for a memory that a related name led to.',
      ),
    supersedes: uuid.exactOptional().describe('The superseded memory that was found, and that this match replaces.'),
    similar: z
      .strictObject({ count, ids: z.array(uuid) })
      .exactOptional()
      .describe('Memories that say nearly the same and were left out: their number, and the ids of the best 20.'),
    neighbours: z
      .strictObject({ before: z.array(storedMemory), after: z.array(storedMemory) })
      .exactOptional()
      .describe(
        'With `neighbours` in `expand`: up to two memories before the match and two after it, each list the earliest ' +
          'first; in its document if the match is a chunk, else in its session. Both lists and `sources` are empty ' +
          'from the match on at which their texts, added up over the matches, exceed 4 MiB.',
      ),
    sources: z
      .array(storedMemory)
      .exactOptional()
      .describe('With `document` in `expand`: memories that the match is derived from, the nearest first.'),
    document: provenance.exactOptional(),
    explain: hitExplanation.exactOptional(),
  })
  .meta({ id: 'Match', examples: [matchExample] });
export type MatchItem = Wire<typeof match>;

const episode = z
  .strictObject({
    kind: z.enum(['memory', 'session']),
    id: z.string().describe('Id of the memory or the session.'),
    user_id: z.string(),
    title: z.string().describe('Title of the memory, or its gist if it has no title; for a session its id.'),
    memory: storedMemory.nullable().describe('null for a session, which has no text of its own.'),
    memory_ids: z.array(uuid).describe('Matches that belong to the episode, best first.'),
  })
  .meta({
    id: 'Episode',
    examples: [
      {
        kind: 'session',
        id: 'ci-7',
        user_id: 'ana',
        title: 'ci-7',
        memory: null,
        memory_ids: ['01a1feb8-1a0f-76f3-a026-7add47092006'],
      },
    ],
  });
export type EpisodeItem = Wire<typeof episode>;

const tokenSatisfied = z
  .boolean()
  .exactOptional()
  .describe('Whether the writes of the token were finished in time; only if the request sent a token.');
/**
 * Schema of what `min_score`, the lowest score that the request or the defaults ask for, did to one answer: whether it
 * was applied, and how many candidates scored below it.
 */
export const floor = z
  .strictObject({
    min_score: z.number().describe('The lowest score, 0 to 1, that the request or the defaults ask for.'),
    acted: z.boolean().describe('Whether it was applied; if not, matches may have lower scores.'),
    reason: z
      .enum(['asking_sentence_unknown'])
      .exactOptional()
      .describe('Why a default `min_score` was not applied: of several sentences, it is not known which one asks.'),
    below: count.describe(
      'Number of candidates with a lower score. Some may be matches all the same, as a strong link led to them.',
    ),
    best_below: z.number().nullable().describe('The best score among them; null if there were none.'),
  })
  .meta({ id: 'Floor' });
export type FloorItem = Wire<typeof floor>;
/**
 * Schema of what the option `cut` (which ends an answer where scores fall off) did: its mode, and how many matches it
 * left out although their scores reach `min_score`.
 */
export const cut = z
  .strictObject({
    mode: z.enum(['relative', 'exact']).describe('The `cut` that the request or the defaults ask for.'),
    left_out: count.describe('Number of candidates that it left out although their score reaches `min_score`.'),
  })
  .meta({ id: 'Cut' });

/** Schema of whether an answer may be worse than it should be. */
export const degraded = z
  .boolean()
  .describe('Whether the answer may be incomplete or ranked worse than usual; `degraded_reasons` says why.');
/** Schema of the reasons why an answer is `degraded` (may be incomplete); absent if it is not. */
export const degradedReasons = z
  .array(z.enum(['vectors', ...WORK_ENDS]))
  .exactOptional()
  .describe(
    'Only if `degraded`. `vectors`: vectors are missing because the embedding provider failed, so words decide. ' +
      '`work_budget`: more rows would have been looked at than one request may (`OM_QUERY_WORK_MB`). `deadline`: it ' +
      'took too long (`OM_QUERY_DEADLINE_MS`). For the last two the answer rests on what was found until then.',
  );

const answer = {
  degraded,
  degraded_reasons: degradedReasons,
  recall_id: uuid.describe('Id of this answer, under which `/recalls/{id}` keeps it for a while.'),
  floor: floor.exactOptional().describe('Only if candidates scored below `min_score`, or it was not applied.'),
  cut: cut.exactOptional().describe('Only if `cut` left something out.'),
  token_satisfied: tokenSatisfied,
  trace: trace.exactOptional(),
  truncated: z
    .literal(true)
    .exactOptional()
    .describe('Matches that do not fit into the reply were left out; absent otherwise.'),
  best_needs: count
    .exactOptional()
    .describe('The `token_budget` that the best match needs, if it did not fit and was left out; absent otherwise.'),
};

/** Schema of the reply to a query with `format: json`, which is the default. */
export const matchesReply = z
  .strictObject({
    query: z.string(),
    matches: z.array(match).describe('Best first.'),
    episodes: z
      .array(episode)
      .exactOptional()
      .describe('With `include_episodes`: the memories and sessions that the matches belong to.'),
    ...answer,
  })
  .meta({
    id: 'Matches',
    examples: [
      {
        query: 'when do we deploy to staging?',
        matches: [matchExample],
        degraded: false,
        recall_id: '01a1fe39-072e-72be-90b2-5f657e247f4a',
      },
    ],
  });
const textReply = z
  .strictObject({
    query: z.string(),
    format: z.enum(FORMATS).exclude(['json']),
    text: z.string().describe('The matches, laid out for a language model.'),
    tokens: count.describe('Estimated tokens of the text.'),
    ids: z.array(uuid).describe('Ids of the matches that the text holds, best first.'),
    ...answer,
  })
  .meta({ id: 'MatchesAsText' });

/** Schema of the reply 200 to `POST /memory/query`: matches, or a text if `format` asks for one. */
export const queryReply = z.union([matchesReply, textReply]);
export type QueryReplyBody = Wire<typeof queryReply>;
const explanationExample = {
  memory_id: '01a1fec3-4938-741b-aa54-e63a9d23de8a',
  outcome: 'filtered',
  rank: null,
  score: null,
  raw_score: null,
  failed_filters: ['filters.tags'],
  superseded_by: null,
  terms: { matched: ['deploy'], in_context: [], missed: ['staging'] },
  cosine: 0.18,
  explain: null,
  remedies: ['remove filters.tags', 'raise k to 2'],
  changes: { 'filters.tags': null, k: 2 },
  degraded: false,
  trace: [{ stage: 'embed', ms: 0.2, in: 1, out: 1 }],
};

/** Schema of the reply 200 to `POST /explain`, which explains why a query does or does not return a memory. */
export const explanation = z
  .strictObject({
    memory_id: uuid,
    outcome: z
      .enum(OUTCOMES)
      .describe(
        '`returned`, or why the query left the memory out. `filtered`: it fails a condition in `failed_filters`. ' +
          '`no_match`: it has no word of the query and its vector is not among the nearest. `not_a_candidate`: it ' +
          'has such words, but too many others matched better. `superseded`: its successor took its place. ' +
          '`sources_hidden`: it is a consolidation, and one of its sources fails a condition. ' +
          '`below_min_score`, `below_relative_floor`: its score is too low. `not_exact`: by `cut: exact`. ' +
          '`near_duplicate`: a better match says nearly the same. `document_limit`: by `per_document`, or a chunk of ' +
          'its document replaces it. `kind_limit`: by `top_k`. `beyond_k`: `k` better ones were returned. ' +
          '`over_budget`: its text does not fit.',
      ),
    rank: rank.nullable().describe('Rank among all candidates; null if the memory was no candidate.'),
    score: unit.nullable().describe('Calibrated score; null if the memory was no candidate.'),
    raw_score: z
      .number()
      .nullable()
      .describe('Score of the profile times the adjustments; null if the memory was no candidate.'),
    failed_filters: z
      .array(z.string())
      .describe(
        'Fields of the request that the memory does not match; `status` or `validity` if it is hidden by default.',
      ),
    superseded_by: uuid
      .nullable()
      .describe('Id of the memory that was a candidate in its place, as it supersedes this one; null if none was.'),
    terms: z
      .strictObject({
        matched: z.array(z.string()),
        in_context: z.array(z.string()),
        missed: z.array(z.string()),
      })
      .describe(
        "The query's terms that stand in the memory itself, only in the two memories just before it in its session, " +
          'and in neither.',
      ),
    cosine: z
      .number()
      .nullable()
      .describe('Cosine of the query and the best part of the memory; null if one of them has no vector.'),
    explain: hitExplanation.nullable(),
    remedies: z
      .array(z.string())
      .describe('Changes that together would return the memory; otherwise why no change would.'),
    changes: anyObject
      .nullable()
      .describe(
        'The changes for a program: fields to set, with null for a field to leave out. null if no change helps.',
      ),
    degraded,
    degraded_reasons: degradedReasons,
    not_tried: z
      .array(z.string())
      .exactOptional()
      .describe(
        'Fields of the request whose changes were not tried, because the work ended; left out if there is none.',
      ),
    trace,
    token_satisfied: tokenSatisfied,
  })
  .meta({ id: 'Explanation', examples: [explanationExample] });
export type ExplanationItem = Wire<typeof explanation>;
