/** Schemas of the jobs in the ledger (the table of all background work), as an operator sees them. */
import { z } from 'zod';
import { JOB_KINDS, JOB_STATES, JOB_STEPS } from '../../engine/index.ts';
import { count, failure, pageEnd, timestamp, uuid } from './memory-replies.ts';
import { expected, page, type Wire } from './values.ts';

const STATE_NAMES = JOB_STATES.join(', ');
const KIND_NAMES = JOB_KINDS.join(', ');
/**
 * Schema of the query string of `GET /jobs`, which lists the jobs (background work of the tenant), the newest first.
 */
export const jobsQuery = z.strictObject({
  ...page,
  state: z
    .enum(JOB_STATES, expected(`one of ${STATE_NAMES}`))
    .optional()
    .describe('Only jobs in this state; `dead` lists the dead letters.'),
  kind: z
    .enum(JOB_KINDS, expected(`one of ${KIND_NAMES}`))
    .optional()
    .describe('Only jobs of this kind.'),
});

/**
 * Schema of the reply 200 to `GET /jobs/:id`, `POST /jobs/:id/retry` and `POST /jobs/:id/cancel`, and of the event
 * `state` of `GET /jobs/:id/events`, which streams a job as it changes.
 */
export const jobSchema = z
  .strictObject({
    id: uuid,
    kind: z.enum(JOB_KINDS),
    memory_id: uuid
      .nullable()
      .describe(
        'The memory that the job works on; null if it works on none, as the job of a document, or if it was erased.',
      ),
    document_id: uuid
      .nullable()
      .describe('The document that the job reads, or that its memory belongs to; null for none.'),
    step: z.enum(JOB_STEPS).describe('The next step of the job.'),
    state: z
      .enum(JOB_STATES)
      .describe('A `failed` job waits for its next attempt at `run_at`; a `dead` job has given up.'),
    priority: z.int().describe('0 for interactive work, which comes first; 1 for bulk work.'),
    attempts: count.describe('Failed attempts at the current step.'),
    crashes: count.describe('Times that a worker died while it ran this job alone; after three the job is dead.'),
    run_at: timestamp.describe('Earliest time of the next attempt, Unix milliseconds; no meaning for an ended job.'),
    error: failure
      .nullable()
      .describe(
        'Why the last attempt failed; null if none did. A `queued` job with `rate_limited` waits for its ' +
          "tenant's share.",
      ),
    created_at: timestamp,
    updated_at: timestamp,
    finished_at: timestamp.nullable().describe('When the job was done, dead or cancelled; null before that.'),
    timeline: z
      .array(
        z.strictObject({ event: z.string().describe('What happened, such as `queued` or `encoded`.'), at: timestamp }),
      )
      .describe('What happened to the job, the earliest first: when it was queued, and at least its last 150 events.'),
  })
  .meta({
    id: 'Job',
    examples: [
      {
        id: '01a1fe30-e25d-71cf-b719-06918c2a54a4',
        kind: 'memory',
        memory_id: '01a1fe30-e25b-7576-a0c2-3c4e3646bd72',
        document_id: null,
        step: 'done',
        state: 'done',
        priority: 0,
        attempts: 0,
        crashes: 0,
        run_at: 1795265978965,
        error: null,
        created_at: 1795265978965,
        updated_at: 1795265979006,
        finished_at: 1795265979006,
        timeline: [
          { event: 'queued', at: 1795265978965 },
          { event: 'encoded', at: 1795265978999 },
          { event: 'linked', at: 1795265979006 },
          { event: 'done', at: 1795265979006 },
        ],
      },
    ],
  });
export type JobItem = Wire<typeof jobSchema>;

/** Schema of the number of jobs in each state, among all jobs of the tenant. */
export const jobCounts = z
  .strictObject({ queued: count, active: count, failed: count, done: count, dead: count, cancelled: count })
  .meta({ id: 'JobCounts', examples: [{ queued: 0, active: 0, failed: 0, done: 4, dead: 0, cancelled: 0 }] });

const backlog = z.strictObject({
  step: z.enum(JOB_STEPS),
  queued: count,
  active: count,
  failed: count,
  oldest_age_ms: count.describe('Age of the oldest unfinished job of the step, ms.'),
});
export type BacklogItem = Wire<typeof backlog>;

/** Schema of the reply 200 to `GET /jobs`, which lists the jobs (background work of the tenant), the newest first. */
export const jobPage = z.strictObject({
  items: z.array(jobSchema),
  total: count.describe('Jobs with this state and kind.'),
  counts: jobCounts.describe('All jobs of the tenant, by state.'),
  backlog: z.array(backlog).describe('Steps with unfinished jobs, and the age of the oldest job of each.'),
  ...pageEnd,
});

/** Schema of the reply 200 to `DELETE /jobs/:id`, which removes a dead or cancelled job from the list. */
export const discardedReply = z.strictObject({ ok: z.literal(true) });
