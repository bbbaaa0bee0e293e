/**
 * Schemas of the recall log, which records the answers to queries: reading an earlier answer, repeating its query, and
 * feedback on it.
 */
import { z } from 'zod';
import { FEEDBACK_VERDICTS, OUTCOMES, PROFILES } from '../../engine/index.ts';
import { LIMITS } from './value-limits.ts';
import { count, storedExample, timestamp, unit, uuid } from './memory-replies.ts';
import {
  adjustment,
  cut,
  degraded,
  degradedReasons,
  features,
  floor,
  hitExplanation,
  match,
  matchExample,
} from './query-replies.ts';
import { querySchema, retrievalReply } from './query.ts';
import { anyObject, BODY_EXPECTED, choice, digits, expected, givenId, id, SHOWN_AS, type Wire } from './values.ts';

const rank = z.int().min(1);
const question = z
  .string()
  .nullable()
  .describe(
    'The question, with markers in place of what the privacy policy redacts; null if the policy refuses to keep it, ' +
      'or if the filter is longer than 16 KiB, of which only users, sessions and the tags of the key are then kept.',
  );
const missing = z
  .array(uuid)
  .describe('Ids of matches of the logged answer that were erased since, or that the key may no longer see.');

// ── Looking up ───────────────────────────────────────────────────────────────────────────────────────────────────────

const { lexical, dense, fused, arrival, rerank } = hitExplanation.shape;
const candidate = z
  .strictObject({
    id: uuid,
    outcome: z.enum(OUTCOMES).describe('`returned` for a match; for another candidate, why it was left out.'),
    version: rank.exactOptional().describe('Version of the memory that was shown; only of matches.'),
    score: unit,
    raw_score: z.number(),
    features,
    adjustments: z.array(adjustment).describe('Factors on the raw score, in order.'),
    lexical,
    dense,
    fused,
    arrival,
    rerank,
    fit: z
      .record(z.string(), z.number().nullable())
      .describe(
        'Fit of the text to the question, by name of the measure, such as `coverage` of its words and `cosine`; null ' +
          'for a measure that does not apply.',
      ),
    held: z
      .number()
      .nullable()
      .describe("Share of the question's words that the text holds, 0 to 1; null if the text was not read."),
    unrelated: z.boolean().describe('Whether the text was read and has nothing to do with the question.'),
  })
  .meta({ id: 'RecalledMemory' });

const feedback = z
  .strictObject({ memory_id: uuid, verdict: z.enum(FEEDBACK_VERDICTS), at: timestamp })
  .meta({ id: 'RecallFeedback' });

const FEATURES_EXAMPLE = {
  similarity: 1,
  activation: 1,
  waypoint: 0,
  salience: 0.4,
  strength: 1,
  recency: 1,
  retention: 1,
  confidence: 1,
};
const CANDIDATE_EXAMPLE = {
  id: storedExample.id,
  outcome: 'returned',
  version: 1,
  score: 0.78,
  raw_score: 0.84,
  features: FEATURES_EXAMPLE,
  adjustments: [],
  lexical: { rank: 1, bm25: 2.4, coverage: 0.9 },
  dense: null,
  fused: { rank: 1, score: 0.01 },
  arrival: null,
  rerank: null,
  fit: { coverage: 0.9, cosine: null },
  held: 0.9,
  unrelated: false,
} as const;
const WEIGHTS_EXAMPLE = { similarity: 0.7, salience: 0.1, recency: 0.1, waypoint: 0.1 };
/** Example of the id of a logged answer (a recall), for the API description and the reference. */
export const RECALL_EXAMPLE_ID = '01a1fe39-072e-72be-90b2-5f657e247f4a';

/**
 * Schema of the reply 200 to `GET /recalls/:id`, which shows the query of a logged answer, and how its matches were
 * found.
 */
export const recallReply = z
  .strictObject({
    recall_id: uuid,
    at: timestamp.describe('Time of the query.'),
    query: question,
    query_kept: z
      .enum(['whole', 'redacted', 'withheld'])
      .describe('How much of the question is kept: all; with markers in place of parts; or nothing.'),
    filters: anyObject.describe(
      'The filter, under the names of `POST /memory/query`; a search of items may add `value`, conditions on values.',
    ),
    k: count,
    options: retrievalReply.describe('All options of retrieval, defaults included.'),
    profile: z.enum(PROFILES),
    weights: z.record(z.string(), z.number()).describe('The weights of the profile, none left out.'),
    statistics: z
      .strictObject({
        vector_weight: unit,
        best_relevance: z.number().describe('Relevance of the most relevant candidate.'),
        best_fused: z.number().describe('Highest fused rank score of a candidate.'),
        confidence: unit.describe('How certain it is that the stored memories are about the query at all.'),
        scope: count
          .describe('Approximate number of memories that the query searched; left out for keys that are bound to tags.')
          .exactOptional(),
      })
      .describe('What the scores of all candidates rest on.'),
    model: z
      .strictObject({ provider: z.string(), model: z.string(), dimensions: count })
      .nullable()
      .describe(
        'The embedding model whose vectors were searched, that of the first sector if sectors have different ' +
          'ones; null if only words were searched.',
      ),
    version: z.string().describe('Version of Cairn that answered.'),
    matches: z.array(candidate).describe('Best first; matches that were erased since are only in `missing`.'),
    left_out: z.array(candidate).describe('The best of the candidates that were no matches, at most 3.'),
    outcomes: z.partialRecord(z.enum(OUTCOMES), count).describe('Number of candidates by outcome, matches included.'),
    missing,
    degraded,
    degraded_reasons: degradedReasons,
    floor: floor.exactOptional(),
    cut: cut.exactOptional(),
    feedback: z.array(feedback),
  })
  .meta({
    id: 'Recall',
    examples: [
      {
        recall_id: RECALL_EXAMPLE_ID,
        at: 1_795_265_978_965,
        query: 'when do we deploy to staging?',
        query_kept: 'whole',
        filters: { user_id: 'ana' },
        k: 8,
        options: { profile: 'composite', rerank: 'builtin' },
        profile: 'composite',
        weights: WEIGHTS_EXAMPLE,
        statistics: { vector_weight: 0, best_relevance: 0.9, best_fused: 0.01, confidence: 0.78, scope: 12 },
        model: null,
        version: '0.1.0',
        matches: [CANDIDATE_EXAMPLE],
        left_out: [],
        outcomes: { returned: 1 },
        missing: [],
        degraded: false,
        feedback: [],
      },
    ],
  });
export type RecallItem = Wire<typeof recallReply>;
export type RecalledItem = Wire<typeof candidate>;

// ── Listing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Schema of the query string of `GET /recalls`, which lists answers that were given, the newest first. */
export const recallListQuery = z.strictObject({
  user_id: id.optional().describe('Only answers to questions about this user; all by default.'),
  memory_id: givenId
    .optional()
    .describe('Only answers that returned this memory, or that log it among the best candidates left out.'),
  limit: digits(1, 100).default(20).describe('Greatest number of answers on the page.'),
  before: z
    .string(expected('one value'))
    .regex(/^\d{1,15}$/, 'expected the `next` of a page')
    .transform(Number)
    .optional()
    .register(SHOWN_AS, { type: 'integer', minimum: 1 })
    .describe('`next` of the page before; the newest answers by default.'),
});
/** Schema of the reply 200 to `GET /recalls`, which lists answers that were given, the newest first. */
export const recallListReply = z
  .strictObject({
    items: z.array(
      z
        .strictObject({
          recall_id: uuid,
          at: timestamp,
          query: question,
          user_ids: z.array(z.string()).describe('Users that the question was about; empty for all.'),
          profile: z.enum(PROFILES),
          matches: count.describe('Number of its matches.'),
          degraded,
        })
        .meta({ id: 'RecallSummary' }),
    ),
    next: z.int().nullable().describe('Begins the next page, as `before`; null on the last one. A page may be short.'),
  })
  .meta({
    examples: [
      {
        items: [
          {
            recall_id: RECALL_EXAMPLE_ID,
            at: 1_795_265_978_965,
            query: 'when do we deploy to staging?',
            user_ids: ['ana'],
            profile: 'composite',
            matches: 3,
            degraded: false,
          },
        ],
        next: null,
      },
    ],
  });
export type RecallListReply = Wire<typeof recallListReply>;

// ── Asking again ─────────────────────────────────────────────────────────────────────────────────────────────────────

const { query } = querySchema.shape;
const changeable = querySchema.omit({ query: true, token: true, reinforce: true }).shape;
/**
 * Schema of the JSON body of `POST /recalls/:id/replay`, which repeats the query of a logged answer (a recall) with the
 * same or other weights: on the candidates that were recorded then, or on today's memories.
 */
export const replaySchema = z
  .strictObject(
    {
      state: choice(['then', 'now'])
        .default('then')
        .describe(
          '`then` scores the candidates that the log keeps, by the weights of the first answer unless the request ' +
            'changes them; `now` asks the memories and the model of today.',
        ),
      query: query.nullish().describe('Another question; only with `now`.'),
      ...changeable,
    },
    BODY_EXPECTED,
  )
  .meta({ id: 'Replay' });
export type ReplayBody = z.output<typeof replaySchema>;

const cause = z.strictObject({
  what: z
    .string()
    .describe(
      'What differs: a feature, `weights.…`, an adjustment, `profile`, `version`, `confidence of the query`; or ' +
        '`others`, if only other matches changed.',
    ),
  from: z.union([z.number(), z.string()]).nullable(),
  to: z.union([z.number(), z.string()]).nullable(),
});
const moved = z
  .strictObject({
    id: uuid,
    from_rank: rank,
    to_rank: rank,
    from_score: unit,
    to_score: unit,
    why: z.array(cause),
  })
  .meta({ id: 'MovedMatch' });
const changed = z
  .strictObject({
    id: uuid,
    rank: rank.describe(
      'Rank of the match in the answer that has it: the recall’s for `gone`, the replay’s for `new`.',
    ),
    score: unit.nullable().describe('Score of the match in that answer; null if the memory was erased since.'),
    why: z
      .enum([...OUTCOMES, 'added', 'erased'])
      .describe('What it was in the other answer; `added`: it was stored since; `erased`: it is gone.'),
  })
  .meta({ id: 'ChangedMatch' });

/**
 * Schema of the reply 200 to `POST /recalls/:id/replay`, which repeats the query of a logged answer (a recall) with the
 * same or other weights: on the candidates that were recorded then, or on today's memories.
 */
export const replayReply = z
  .strictObject({
    recall_id: uuid,
    state: z.enum(['then', 'now']),
    asked_at: timestamp.describe('Time of the first answer, Unix milliseconds.'),
    at: timestamp.describe('Time as of which the matches are.'),
    query: question,
    matches: z.array(match).describe('Best first, as `POST /memory/query` gives them.'),
    missing,
    not_kept: z
      .array(z.string())
      .describe(
        'Fields of the first answer that the log does not keep; `version` if that of a memory was guessed from ' +
          'its time.',
      ),
    moved: z.array(moved).describe('Matches of both answers whose rank, or score by 0.001 or more, differs.'),
    gone: z.array(changed).describe('Matches of the recall that this answer does not have.'),
    new: z.array(changed).describe('Matches of this answer that the recall did not have.'),
    degraded,
    degraded_reasons: degradedReasons,
  })
  .meta({
    id: 'ReplayReply',
    examples: [
      {
        recall_id: RECALL_EXAMPLE_ID,
        state: 'then',
        asked_at: 1_795_265_978_965,
        at: 1_795_265_978_965,
        query: 'when do we deploy to staging?',
        matches: [matchExample],
        missing: [],
        not_kept: [],
        moved: [],
        gone: [],
        new: [],
        degraded: false,
      },
    ],
  });
export type ReplayReplyItem = Wire<typeof replayReply>;

// ── Feedback ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Schema of the JSON body of `POST /recalls/:id/feedback`, which stores a verdict on matches of a logged answer, such
 * as whether they were used.
 */
export const feedbackSchema = z
  .strictObject(
    {
      verdict: choice(FEEDBACK_VERDICTS).describe('What the memories were to the caller: used, useless, or wrong.'),
      memory_ids: z
        .array(givenId, expected('a list of ids'))
        .min(1, 'must not be empty')
        .max(LIMITS.k, `at most ${LIMITS.k} entries`)
        .describe('Matches of the recall.'),
    },
    BODY_EXPECTED,
  )
  .meta({ id: 'NewRecallFeedback' });
/**
 * Schema of the reply 200 to `POST /recalls/:id/feedback`, which stores a verdict on matches of a logged answer, such
 * as whether they were used.
 */
export const feedbackReply = z.strictObject({
  recall_id: uuid,
  feedback: z.array(feedback).describe('All feedback on the recall.'),
});
