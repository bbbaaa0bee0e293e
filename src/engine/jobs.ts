import { z } from 'zod';

/** What queues carry: names, and ids of ledger rows. Never content, a user or a file name, as Redis is no place for them. */

/** Steps of the ledger that have a queue of their own. */
export const QUEUED_STEPS = ['ingest', 'encode', 'link', 'reason'] as const;
export type QueuedStep = (typeof QUEUED_STEPS)[number];

export const QUEUE_NAMES = [...QUEUED_STEPS, 'maintain'] as const;
export type QueueName = (typeof QUEUE_NAMES)[number];

/** Ledger rows that one job carries at most. */
export const JOB_IDS_MOST = 64;
/** Of those that ask a language model: two rounds of as many as are asked at once. */
export const QUESTIONS_MOST = 8;

const tenantId = z.string().min(1).max(64);

/** A job of a step's queue: rows of one tenant's ledger whose next step is the queue's. */
export const stepPayloadSchema = z.strictObject({
  tenant: tenantId,
  seqs: z.array(z.int().positive()).min(1).max(JOB_IDS_MOST),
  /** They were in flight at a crash: nothing else runs in the worker meanwhile, so that the next crash is their own doing. */
  alone: z.boolean(),
});
export type StepPayload = z.output<typeof stepPayloadSchema>;

/**
 * The queue `maintain` carries ticks, and no payload: a job scheduler of BullMQ says when to look, each tenant's file what is due.
 */
export const TICK = { id: 'tick', everyMs: 15_000 } as const;
