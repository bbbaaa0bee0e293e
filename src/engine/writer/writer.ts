import { serialiseError, type SerialisedError } from '../errors.ts';
import type { BusyTotals } from '../store/open-store.ts';
import type { FieldText } from '../store/packed-json.ts';
import type { WriteCommandName, WriteInput, WriteOutput } from './commands.ts';
import type { WriteRequest } from './group-commit.ts';

/**
 * The only way in which the API writes to the data of tenants. Requests that arrive during a commit share the next one,
 * so that the number of fsyncs depends on the disk and not on the number of clients.
 */
export interface Writer {
  /**
   * Runs a command on the tenant's file at `path`, as the key with the public id `writtenBy`; without it, as Cairn
   * itself. The promise resolves once the result is on disk and the words of memories whose contexts the command has
   * changed are written anew, if they are many by further commits. If one of these fails, or the writer is closed, it
   * resolves without them, and upkeep writes the other words. It rejects with the command's EngineError, and
   * nothing of the command is written then; with `unavailable` after `close` or after the end of the committing thread;
   * or with `unavailable` and `mayBeWritten` if that thread ended, or the database was lost, before the answer: then
   * the command may have been written.
   */
  write<N extends WriteCommandName>(
    path: string,
    name: N,
    input: WriteInput<N>,
    writtenBy?: string,
  ): Promise<WriteOutput<N>>;
  /** Closes the tenant's file at `path`, which is about to be removed. A later write opens it again. */
  evict(path: string): Promise<void>;
  /** Finishes the requests that have arrived, refuses later ones with `unavailable`, and closes every file. */
  close(): Promise<void>;
}

/** Greatest number of requests in one group, and in one commit. */
export const MAX_GROUP_REQUESTS = 256;

/**
 * Requests for one file, which run in their order. They go into one transaction, or into several if requests for other
 * files would wait too long or they are much work (`commitGroup`).
 */
export interface WriteGroup {
  readonly path: string;
  readonly requests: readonly WriteRequest[];
}

/**
 * Result of one request as threads send it to each other: as `WriteResult`, with the error in serialised form. `texts`
 * has the fields that `packResult` took out of the value; absent if it took out none.
 */
export type WriteReply =
  | {
      readonly ok: true;
      readonly value: unknown;
      readonly delayed: number;
      readonly texts?: readonly FieldText[];
    }
  | { readonly ok: false; readonly error: SerialisedError };

/** Result of committing one group. */
export interface GroupReply {
  /** Replies in the order of the group's requests. */
  readonly replies: readonly WriteReply[];
  /** Figures of the commit that contained the last request of the group. */
  readonly commit: CommitFigures;
  /**
   * Figures of the commits that metrics must count with this reply. A commit that several groups shared is only in the
   * reply of the first of these groups, so that it is counted once.
   */
  readonly counted: readonly CommitFigures[];
  /**
   * Position of the tenant after the last commit of the group (`Store.position`); 0 for a file, and if that commit
   * failed.
   */
  readonly position: number;
  /**
   * How often and how long the committing thread has waited for locks of other connections, added up since it started.
   */
  readonly busy: BusyTotals;
}

/** Duration and size of a commit. */
export interface CommitFigures {
  /** Duration of the commit, its commands included (ms). */
  readonly ms: number;
  /** Number of requests that shared the commit. */
  readonly requests: number;
}

/** Makes the replies of a group whose commit failed as a whole: the same error for every request. */
export function failGroup(group: WriteGroup, error: unknown): WriteReply[] {
  return group.requests.map(() => ({ ok: false, error: serialiseError(error) }));
}
