/** Schemas of consolidations. */
import { z } from 'zod';
import { LIMITS } from './value-limits.ts';
import { CONSOLIDATION_METHODS, JOB_STATES } from '../../engine/index.ts';
import { failure, timestamp, token, uuid } from './memory-replies.ts';
import { BODY_EXPECTED, digits, flag, givenId, id, type Wire } from './values.ts';

/**
 * Schema of the JSON body of `POST /consolidations`, which starts a run that makes one gathered memory of several
 * memories that say nearly the same or follow one topic.
 */
export const consolidateSchema = z.strictObject(
  {
    user_id: id
      .nullish()
      .describe('Only memories of this user are gathered; those of all users, each apart, if left out.'),
    dry_run: flag
      .optional()
      .describe('If true, the reply lists what would be gathered, and nothing changes; false by default.'),
    again: flag
      .optional()
      .describe('If true, memories whose consolidation was undone are gathered again; false by default.'),
  },
  BODY_EXPECTED,
);

/**
 * Schema of the query string of `GET /consolidations`, which lists consolidations (memories gathered from several
 * others), including those that were undone.
 */
export const consolidationsQuery = z.strictObject({
  user_id: id.optional().describe("Only consolidations of this user's memories."),
  job_id: givenId.optional().describe('Only consolidations that the run with this job id made.'),
  before: givenId
    .optional()
    .describe('Only consolidations that are older than the one with this id: the `next` of the page before.'),
  l: digits(1, LIMITS.page).default(LIMITS.defaultPage).describe('Greatest number of items on the page.'),
});

const sources = z.array(uuid).describe('The memories that were gathered, the earliest first. They stay as they are.');

const consolidation = z
  .strictObject({
    id: uuid,
    job_id: uuid.describe('Id of the job whose run made the consolidation.'),
    user_id: z.string().describe("User of the memories; '' for none."),
    memory_id: uuid
      .nullable()
      .describe(
        'The gathered memory; null once the consolidation was undone, and if the privacy policy refused its text.',
      ),
    source_ids: sources,
    method: z
      .enum(CONSOLIDATION_METHODS)
      .describe('`sentences` of the sources, verbatim, or a text that the language `model` wrote.'),
    created_at: timestamp,
  })
  .meta({
    id: 'Consolidation',
    examples: [
      {
        id: '01a21580-5d1c-7d6a-9a35-0f4a8a0b6f11',
        job_id: '01a21580-5c02-70c1-8b70-6b1f36a3a3f5',
        user_id: 'ana',
        memory_id: '01a21580-5d1c-7d6a-9a35-103f22f2a4b8',
        source_ids: ['01a1feb9-11f2-7362-8b9d-88949a451b09', '01a1feb9-1288-7569-a1c4-6c51b0283513'],
        method: 'sentences',
        created_at: 1795265978965,
      },
    ],
  });
export type ConsolidationItem = Wire<typeof consolidation>;

/**
 * Schema of the reply 200 to `GET /consolidations`, which lists consolidations (memories gathered from several others),
 * including those that were undone.
 */
export const consolidationList = z.strictObject({
  items: z.array(consolidation).describe('The newest first.'),
  next: uuid.exactOptional().describe('The `before` of the next page; absent on the last page.'),
});

const proposal = z.strictObject({
  user_id: z.string(),
  content: z.string().describe('The gathered text, made of sentences of its sources.'),
  source_ids: sources,
});
/**
 * Schema of the reply to `POST /consolidations` with `dry_run`: which memories a run would gather into one. Nothing is
 * written.
 */
export const consolidationProposals = z.strictObject({
  proposals: z.array(proposal),
  truncated: z
    .boolean()
    .describe(
      'Whether there may be more: the reply lists at most 50, or the work that one request may cause had ended.',
    ),
});
/**
 * Schema of the reply 202 to `POST /consolidations`, which starts a run that makes one gathered memory of several
 * memories that say nearly the same or follow one topic.
 */
export const consolidationQueued = z.strictObject({ job_id: uuid, state: z.literal('queued'), token });
/** Schema of the reply to `POST /consolidations` if the run ended while the request waited for it. */
export const consolidationEnded = z.strictObject({
  job_id: uuid,
  state: z.enum(JOB_STATES),
  error: failure.exactOptional().describe('Why the job failed.'),
});

/** Schema of the reply 200 to `POST /consolidations/:id/undo`, which undoes a consolidation, or all of a run. */
export const undoneReply = z.strictObject({ undone: z.int().min(0).describe('Gathered memories that were erased.') });
