import { z } from 'zod';
import { EDGE_TYPES, FORMATS, OUTCOMES, PROFILES, WEIGHT_NAMES } from '../../engine/index.ts';
import { provenance } from './document-replies.ts';
import { count, storedExample, storedFields, storedMemory, unit, uuid } from './memory-replies.ts';
import { anyObject, type Wire } from './values.ts';

/** What answers of queries and explanations hold. */

const rank = z.int().min(1);
const weights = z.partialRecord(z.enum(WEIGHT_NAMES), z.number());

// ── Why a hit came back ──────────────────────────────────────────────────────────────────────────────────────────────

const features = z
  .strictObject({
    similarity: unit.describe('How well words and vector fit, relative to the best match.'),
    activation: unit.describe('Share of the best fused score, or what came over links where that is more.'),
    waypoint: unit.describe('What came over links; 0 for a direct hit that they brought nothing.'),
    salience: unit.describe("The memory's, as it has decayed by now."),
    strength: unit.describe("The memory's, as it has decayed by now."),
    recency: unit.describe('`e^(−0.05 · days since last_seen_at)`.'),
    retention: unit.describe('`e^(−decay_lambda · days since last_seen_at)`, at least 0.02.'),
    confidence: unit.describe("The memory's own."),
  })
  .describe('What the formula of the profile reads.');

const adjustment = z.strictObject({
  by: z.enum(['contradicted', 'superseded', 'status', 'rerank', 'session', 'model']),
  factor: z.number().min(0),
  because: z.string().exactOptional().describe('The memory that caused it.'),
  automatic: z.literal(true).exactOptional().describe('A language model found the contradiction; nobody stated it.'),
});

const arrival = z
  .strictObject({
    from: uuid.nullable(),
    via: z.enum([...EDGE_TYPES, 'entity']),
    entity: z.string().exactOptional(),
    weight: z.number(),
    hops: count,
    activation: unit,
  })
  .nullable()
  .describe('Over which link, or by which name, activation came; null if none did.');

export const hitExplanation = z
  .strictObject({
    lexical: z
      .strictObject({ rank, bm25: z.number(), coverage: z.number().min(0) })
      .nullable()
      .describe(
        'Place among the memories found by words. `coverage` is about 1 where all words of the query stand there.',
      ),
    dense: z
      .strictObject({ rank, similarity: z.number(), window: count })
      .nullable()
      .describe('Place among the nearest, its cosine, and which part of a long text it was.'),
    fused: z
      .strictObject({ rank, score: z.number() })
      .nullable()
      .describe('Place in the two lists together; null for a memory that only links led to.'),
    arrival,
    profile: z.enum(PROFILES).describe('What turned `features` into `raw_score`, by `weights`.'),
    features,
    weights,
    adjustments: z.array(adjustment).describe('Factors that later stages put on the raw score.'),
    rerank: z
      .record(z.string(), z.number())
      .nullable()
      .describe('What the built-in reranker measured, 0..1 each; null where it did not run.'),
    confidence: unit.describe(
      'How sure it is that the query is about these memories at all, the same for all matches.',
    ),
    terms: z.array(z.string()).describe("The query's terms that the memory, or what was said before it, holds."),
  })
  .meta({
    id: 'HitExplanation',
    description: 'Why a match came back. Ranks count from 1; null where a stage did not find it.',
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
          .describe('The plan chosen, terms left out, or what a stage was switched off by.'),
      })
      .meta({ id: 'StageTrace', examples: [{ stage: 'embed', ms: 1.3, in: 1, out: 1 }] }),
  )
  .describe('Each stage in the order they ran, with its time and how many memories went in and came out.');

// ── Answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const matchExample = {
  ...storedExample,
  score: 0.78,
  raw_score: 0.78,
  path: [storedExample.id],
};

export const match = z
  .strictObject({
    ...storedFields,
    score: unit.describe('Comparable between queries; what `min_score` compares with.'),
    raw_score: z.number().min(0).describe("The profile's value times the adjustments; may exceed 1. Orders matches."),
    path: z.array(uuid).describe('Ids from the direct hit to this memory; only its own for a direct hit.'),
    supersedes: uuid.exactOptional().describe('The memory in whose place it stands, which led to it.'),
    neighbours: z
      .strictObject({ before: z.array(storedMemory), after: z.array(storedMemory) })
      .exactOptional()
      .describe('With `expand`: what was said around it in its session, earlier first.'),
    sources: z
      .array(storedMemory)
      .exactOptional()
      .describe('With `expand`: memories that it is derived from, nearest first.'),
    document: provenance.exactOptional(),
    explain: hitExplanation.exactOptional(),
  })
  .meta({ id: 'Match', examples: [matchExample] });
export type MatchItem = Wire<typeof match>;

const episode = z
  .strictObject({
    kind: z.enum(['memory', 'session']),
    id: z.string().describe("The memory's id, or the session's."),
    user_id: z.string(),
    title: z.string().describe("The memory's title, else its gist; for a session its id."),
    memory: storedMemory.nullable().describe('null for a session, which has no text of its own.'),
    memory_ids: z.array(uuid).describe('Matches that belong to it, best first.'),
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
  .describe('Only where a token was sent: whether its writes were finished in time.');
const floor = z
  .strictObject({
    min_score: z.number().describe('The least score that was asked for, by the request or else by the defaults.'),
    acted: z.boolean().describe('Whether memories under it were left out.'),
    reason: z
      .enum(['asking_sentence_unknown'])
      .exactOptional()
      .describe('Why a default floor did not act: nothing tells which of several sentences asks.'),
    below: count.describe('How many candidates had a lower score.'),
    best_below: z.number().nullable().describe('The best of their scores; null where there were none.'),
  })
  .meta({ id: 'Floor' });
export type FloorItem = Wire<typeof floor>;

const answer = {
  degraded: z.boolean().describe('Vectors were due and the provider failed: the answer rests on words.'),
  recall_id: uuid.describe('Names this answer.'),
  floor: floor.exactOptional().describe('Only where the floor left something out, or did not act.'),
  token_satisfied: tokenSatisfied,
  trace: trace.exactOptional(),
};

const matchesReply = z
  .strictObject({
    query: z.string(),
    matches: z.array(match).describe('Best first.'),
    episodes: z.array(episode).exactOptional().describe('With `include_episodes`: what the matches belong to.'),
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
    tokens: count.describe('As estimated.'),
    ids: z.array(uuid).describe('Memories that the text holds, best first.'),
    ...answer,
  })
  .meta({ id: 'MatchesAsText' });

/** An answer as matches, or as a text where `format` asks for one. */
export const queryReply = z.union([matchesReply, textReply]);
export type QueryReplyBody = Wire<typeof queryReply>;
/** An answer as matches, which is what a query without `format` gets. */
export type MatchesReply = Wire<typeof matchesReply>;

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
  trace: [{ stage: 'embed', ms: 0.2, in: 1, out: 1 }],
};

export const explanation = z
  .strictObject({
    memory_id: uuid,
    outcome: z.enum(OUTCOMES).describe('Where it stands or fell out.'),
    rank: rank.nullable().describe('Its place among all candidates; null where it was none.'),
    score: unit.nullable(),
    raw_score: z.number().nullable(),
    failed_filters: z
      .array(z.string())
      .describe('Fields of the request that it fails; `status` or `validity` where it is hidden by default.'),
    superseded_by: uuid.nullable().describe('The live end that took its place.'),
    terms: z
      .strictObject({
        matched: z.array(z.string()),
        in_context: z.array(z.string()),
        missed: z.array(z.string()),
      })
      .describe("The query's terms that stand in the memory itself, only in what was said before it, and in neither."),
    cosine: z.number().nullable().describe('Of its best part and the query; null where one of them has no vector.'),
    explain: hitExplanation.nullable(),
    remedies: z.array(z.string()).describe('What would bring it back, all of it together; else why nothing would.'),
    changes: anyObject
      .nullable()
      .describe('The same for a program: fields to set, null to leave one out. null where no change helps.'),
    trace,
    token_satisfied: tokenSatisfied,
  })
  .meta({ id: 'Explanation', examples: [explanationExample] });
export type ExplanationItem = Wire<typeof explanation>;
