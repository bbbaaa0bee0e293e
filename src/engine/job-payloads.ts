/**
 * What jobs of the queues carry. The names of the queues are in jobs.ts, so that a module that needs only names does
 * not load zod.
 */
import { z } from 'zod';
import { MAX_JOB_IDS } from './jobs.ts';

const tenantId = z.string().min(1).max(64);

/**
 * Checks the payload of a job in a step's queue: numbers of rows of one tenant's ledger (its table of jobs). The
 * queue's name says which step of these jobs is next.
 */
export const stepPayloadSchema = z.strictObject({
  /** Id of the tenant. */
  tenant: tenantId,
  /** Numbers of the rows in the ledger of the tenant. */
  jobNos: z.array(z.int().positive()).min(1).max(MAX_JOB_IDS),
  /**
   * Whether the rows of `jobNos` are suspects: they were active when a worker crashed. The worker then runs nothing
   * else beside them, so that another crash can only be caused by them.
   */
  alone: z.boolean(),
});
/** What a job of a step's queue carries: numbers of ledger rows, and no text. */
export type StepPayload = z.output<typeof stepPayloadSchema>;
