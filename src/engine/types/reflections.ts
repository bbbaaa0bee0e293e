import type { Memory } from './memory.ts';

/** Lets a language model reflect on memories. */
export interface Reflections {
  /**
   * Asks for a reflection on the latest memories of a user, or of one session (null for all). A language model writes
   * down what follows from several of them; each insight becomes a memory of the type `reflection` with links to the
   * memories it rests on. If such a job has not ended yet, no second one is made, and that one is returned.
   * @returns the id of the job, and a write receipt to wait for it
   * @throws EngineError `invalid` without a language model; `not_found` for a user without memories
   */
  reflect(scope: {
    readonly userId: string;
    readonly sessionId: string | null;
  }): Promise<{ readonly jobId: string; readonly token: string }>;
  /**
   * Lists at most `limit` active reflections on a user's memories, newest first; none for an unknown user. Their
   * `metadata.reflection_job` holds the id of the job that wrote them.
   */
  listReflections(userId: string, limit: number): Promise<Memory[]>;
}
