import { serialiseError, type SerialisedError } from '../errors.ts';
import type { BusyTotals } from '../store/open-store.ts';
import type { WriteCommandName, WriteInput, WriteOutput } from './commands.ts';
import type { WriteRequest } from './group-commit.ts';

/**
 * The one way in which the API writes. Requests that arrive while a commit is under way share the next one, so that the number of
 * fsyncs follows the disk and not the clients.
 */
export interface Writer {
  /** Resolves once the command is on disk. */
  write<N extends WriteCommandName>(path: string, name: N, input: WriteInput<N>): Promise<WriteOutput<N>>;
  /** Closes the file, because it is about to be removed. */
  evict(path: string): Promise<void>;
  /** Finishes what was asked for, then closes every file. */
  close(): Promise<void>;
}

/** Requests for one file that go into one transaction. */
export interface WriteGroup {
  readonly path: string;
  readonly requests: readonly WriteRequest[];
}

export type WriteReply =
  { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: SerialisedError };

export interface GroupReply {
  readonly replies: readonly WriteReply[];
  readonly commitMs: number;
  /** What the committing thread has waited for others since it began. */
  readonly busy: BusyTotals;
}

/** Every request of a group that failed as a whole gets the same answer. */
export function failGroup(group: WriteGroup, error: unknown): WriteReply[] {
  return group.requests.map(() => ({ ok: false, error: serialiseError(error) }));
}
