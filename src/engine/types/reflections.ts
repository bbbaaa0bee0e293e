import type { Memory } from './memory.ts';

/** The methods of a tenant for reflections: conclusions that a language model draws from several memories. */
export interface Reflections {
  /**
   * Adds a job that reflects on the latest memories of a user, or of one session of the user (`sessionId` null for
   * all). Each conclusion of the language model becomes a memory of the type `reflection`, with links to the memories
   * from which it follows. If a job for the same scope has not ended yet, no second one is added, and the earlier one
   * is returned.
   * @returns the id of the job, and a write receipt to wait for it
   * @throws EngineError `invalid` if no language model is configured; `not_found` for a user without memories
   */
  reflect(scope: {
    readonly userId: string;
    readonly sessionId: string | null;
  }): Promise<{ readonly jobId: string; readonly token: string }>;
  /**
   * Lists at most `limit` active reflections on a user's memories, newest first; empty for an unknown user. The field
   * `metadata.reflection_job` of each holds the id of the job that wrote it.
   */
  listReflections(userId: string, limit: number): Promise<Memory[]>;
}
