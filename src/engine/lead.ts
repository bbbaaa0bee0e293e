import type { JobDispatcher } from './ports.ts';
import type { GroupTransport } from './writer/grouping-writer.ts';

/**
 * What the API processes of one machine leave to the process that started them: one thread that commits for all of
 * them, and one dispatcher that tells the workers of new work. So commits never wait for each other across processes,
 * and whatever is counted at a commit is counted once.
 */
export interface Lead {
  readonly transport: GroupTransport;
  readonly dispatcher: JobDispatcher;
}
