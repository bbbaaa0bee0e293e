import type { JobDispatcher } from './ports.ts';
import type { GroupTransport } from './writer/grouping-writer.ts';

/**
 * What the API processes of one machine leave to their parent process: one thread that commits for all of them, and one
 * dispatcher that tells the workers of new work. So commits never wait for each other across processes, and the counts
 * that a commit updates are kept in one process.
 */
export interface Lead {
  readonly transport: GroupTransport;
  readonly dispatcher: JobDispatcher;
}
