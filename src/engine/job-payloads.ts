/** What jobs of the queues carry, apart from their names: who only needs the names does not load zod. */
import { z } from 'zod';
import { MAX_JOB_IDS } from './jobs.ts';

const tenantId = z.string().min(1).max(64);

/** Checks a job of a step's queue: rows of one tenant's ledger whose next step is that of the queue. */
export const stepPayloadSchema = z.strictObject({
  /** Id of the tenant, and the numbers of the rows in its ledger. */
  tenant: tenantId,
  jobNos: z.array(z.int().positive()).min(1).max(MAX_JOB_IDS),
  /**
   * Whether these rows were in flight at a crash. Nothing else then runs in the worker beside them, so that another
   * crash can only be caused by them.
   */
  alone: z.boolean(),
});
/** What a job of a step's queue carries: numbers of ledger rows, and no text. */
export type StepPayload = z.output<typeof stepPayloadSchema>;
