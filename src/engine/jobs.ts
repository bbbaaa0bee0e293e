import { z } from 'zod';

/** What queues carry: names, and ids of ledger rows. Never content, a user or a file name, as Redis is no place for them. */

/** Steps of the ledger that have a queue of their own. */
export const QUEUED_STEPS = ['encode', 'link'] as const;
export type QueuedStep = (typeof QUEUED_STEPS)[number];

export const QUEUE_NAMES = [...QUEUED_STEPS, 'maintain'] as const;
export type QueueName = (typeof QUEUE_NAMES)[number];

/** Ledger rows that one job carries at most. */
export const JOB_IDS_MOST = 64;

const tenantId = z.string().min(1).max(64);

/** A job of the queue `encode` or `link`: rows of one tenant's ledger whose next step is the queue's. */
export const stepPayloadSchema = z.strictObject({
  tenant: tenantId,
  seqs: z.array(z.int().positive()).min(1).max(JOB_IDS_MOST),
  /** They were in flight at a crash: nothing else runs in the worker meanwhile, so that the next crash is their own doing. */
  alone: z.boolean(),
});
export type StepPayload = z.output<typeof stepPayloadSchema>;

/** The schedules of the queue `maintain`, which concern every tenant. */
export const SCHEDULE_NAMES = [
  'decay',
  'prune',
  'expire',
  'purge',
  'reconcile',
  'checkpoint',
  'optimize',
  'calibrate',
] as const;
export type ScheduleName = (typeof SCHEDULE_NAMES)[number];
export const schedulePayloadSchema = z.strictObject({ schedule: z.enum(SCHEDULE_NAMES) });
export type SchedulePayload = z.output<typeof schedulePayloadSchema>;
