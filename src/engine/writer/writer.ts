import { serialiseError, type SerialisedError } from '../errors.ts';
import type { BusyTotals } from '../store/open-store.ts';
import type { WriteCommandName, WriteInput, WriteOutput } from './commands.ts';
import type { WriteRequest } from './group-commit.ts';

/**
 * The only way in which the API writes. Requests that arrive while a commit is under way share the next one, so that
 * the number of fsyncs follows the disk and not the clients.
 */
export interface Writer {
  /**
   * Runs a command on the tenant's file at `path`, in the name of the key with the public id `writtenBy`, by default of
   * nobody. The promise resolves once the command is on disk, and rejects with
   * the command's EngineError, with nothing of it written; with `unavailable` after `close`.
   */
  write<N extends WriteCommandName>(
    path: string,
    name: N,
    input: WriteInput<N>,
    writtenBy?: string,
  ): Promise<WriteOutput<N>>;
  /** Closes the tenant's file at `path`, which is about to be removed. A later write opens it again. */
  evict(path: string): Promise<void>;
  /** Finishes the requests that have come, refuses later ones, and closes every file. */
  close(): Promise<void>;
}

/** Most requests in one round, over the groups of all files, and in one commit. */
export const MAX_ROUND_REQUESTS = 256;

/** Requests for one file that go into one transaction. */
export interface WriteGroup {
  readonly path: string;
  readonly requests: readonly WriteRequest[];
}

export type WriteReply =
  { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: SerialisedError };

/** Result of committing one group. */
export interface GroupReply {
  /** Replies in the order of the group's requests. */
  readonly replies: readonly WriteReply[];
  readonly commit: CommitFigures;
  /** Waits of the committing thread for the commits of other connections, since the thread began. */
  readonly busy: BusyTotals;
}

/** Figures of the commit that held a group. */
interface CommitFigures {
  /** Time that the commit took, its commands included (ms). */
  readonly ms: number;
  /** Number of requests that shared the commit. */
  readonly requests: number;
  /** Whether a reply before this one has the same figures, because its group shared the commit. */
  readonly isRepeated: boolean;
}

/** Answers every request of a group that failed as a whole with the same error. */
export function failGroup(group: WriteGroup, error: unknown): WriteReply[] {
  return group.requests.map(() => ({ ok: false, error: serialiseError(error) }));
}
