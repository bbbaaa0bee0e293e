/** Schemas of weights that were learned from feedback. */
import { z } from 'zod';
import { LEARNED_STATES, PROFILES } from '../../engine/index.ts';
import { count, timestamp, unit, uuid } from './memory-replies.ts';
import type { Wire } from './values.ts';

const measure = z
  .strictObject({
    order: unit.describe(
      'Share of the pairs of a used match and a useless or wrong one in which the used match ranks higher.',
    ),
    wanted: unit.describe('Share of the used matches whose score reaches `min_score`.'),
    unwanted: unit.describe('Share of the useless and wrong matches whose score reaches `min_score`.'),
  })
  .meta({ id: 'FeedbackMeasure' });

const learnedOptions = z.strictObject({
  weights: z.record(z.string(), z.number()),
  vector_weight: unit.nullable().describe("Share of vectors against words; null for the embedder's own value."),
  min_score: unit,
});

/** Schema of the reply 200 to `POST /learned/:id/accept` and `POST /learned/:id/revert`. */
export const learned = z
  .strictObject({
    id: uuid,
    at: timestamp,
    state: z
      .enum(LEARNED_STATES)
      .describe(
        '`proposed`: nothing is changed yet; `accepted`: the options in `after` became defaults of queries; ' +
          '`reverted`: the defaults from before the acceptance are back.',
      ),
    profile: z.enum(PROFILES),
    before: learnedOptions.describe('Options that were in force when the proposal was made.'),
    after: learnedOptions.describe('Options that are proposed.'),
    report: z.strictObject({
      learned_from: count.describe('Recalls that were learned from, the earlier ones.'),
      held_out: count.describe('Recalls that were held out, the later ones; the measures are of these.'),
      held_out_from: timestamp.describe('Time of the first recall that was held out.'),
      before: measure,
      after: measure,
      chance: unit.describe('Share of 1,000 draws of the held-out recalls in which the order is no better.'),
    }),
  })
  .meta({
    id: 'Learned',
    examples: [
      {
        id: '01a21580-5d1c-7d6a-9a35-0f4a8a0b6f11',
        at: 1795265978965,
        state: 'proposed',
        profile: 'composite',
        before: {
          weights: { similarity: 0.7, salience: 0.1, recency: 0.1, waypoint: 0.1 },
          vector_weight: null,
          min_score: 0.3,
        },
        after: {
          weights: { similarity: 0.7, salience: 0.04, recency: 0.27, waypoint: 0.1 },
          vector_weight: null,
          min_score: 0.3,
        },
        report: {
          learned_from: 84,
          held_out: 36,
          held_out_from: 1795200000000,
          before: { order: 0.69, wanted: 1, unwanted: 1 },
          after: { order: 0.86, wanted: 1, unwanted: 1 },
          chance: 0.001,
        },
      },
    ],
  });
export type LearnedItem = Wire<typeof learned>;

/**
 * Schema of the reply 200 to `GET /learned`, which lists the ranking weights that were learned from feedback, with the
 * quality of the ranking before and after.
 */
export const learnedList = z.strictObject({ items: z.array(learned).describe('The newest first.') });

/**
 * Schema of the reply 200 to `POST /learned`, which learns ranking weights and a lowest score from feedback, and
 * proposes them.
 */
export const learningReply = z.strictObject({
  learned: learned.nullable().describe('The proposal; null if there is none.'),
  reason: z.string().nullable().describe('Why there is no proposal: too few recalls, or nothing better was found.'),
});
