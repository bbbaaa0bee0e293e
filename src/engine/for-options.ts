/**
 * The exports for the declarations of the command line: the names that its options may have. Each command loads them at
 * its start, and the front door would cost it 0.1 s of CPU.
 */

export { ROLES } from './types.ts';
export { DAY_MS } from './dynamics.ts';
export { EngineError } from './errors.ts';
export { QUEUE_NAMES } from './jobs.ts';
export type { QueueName } from './jobs.ts';
export {
  CUTS,
  DEFAULT_K,
  DELIVERY_STATES,
  FEEDBACK_VERDICTS,
  FORMATS,
  INCLUDED,
  JOB_STATES,
  NEAR_DUPLICATE_COSINE,
  PROFILES,
  QUERY_LIMITS,
  SECTORS,
  SIMILARITIES,
} from './types.ts';
export { beginningOf } from './text/beginning-of.ts';
export { VERSION } from './version.ts';
