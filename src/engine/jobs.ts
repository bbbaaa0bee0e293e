/**
 * The queues and what they carry: names, and numbers of ledger rows. Content, users and file names never reach a
 * queue, so that its server holds none of them on their account.
 */

/** The steps of a job that have a queue each; the queue has the name of its step. Other steps wait for no worker. */
export const QUEUED_STEPS = ['ingest', 'encode', 'link', 'reason'] as const;
export type QueuedStep = (typeof QUEUED_STEPS)[number];

/**
 * The names of all queues, without their prefix in Redis. `maintain` carries only ticks, which start periodic upkeep;
 * each other queue carries numbers of ledger rows.
 */
export const QUEUE_NAMES = [...QUEUED_STEPS, 'maintain'] as const;
export type QueueName = (typeof QUEUE_NAMES)[number];

/** Greatest number of ledger rows that one job of a queue carries. */
export const MAX_JOB_IDS = 64;
/**
 * Greatest number of ledger rows that one job of the queue `reason` carries: twice the number of calls of a language
 * model that run at once.
 */
export const MAX_QUESTIONS = 8;

/**
 * The tick that the queue `maintain` carries every `everyMs`, without a payload. The job scheduler of BullMQ named `id`
 * sends it. Each tenant's file then says which maintenance is due.
 */
export const TICK = { id: 'tick', everyMs: 15_000 } as const;
