import type { TenantPool } from '../tenant-file/tenant-pool.ts';
import { READ_COMMANDS, type ReadCommandName, type ReadInput, type ReadOutput } from './commands.ts';
import type { ReadContext } from './read-context.ts';

/** Runs read commands, on threads of their own or on this one. */
export interface Readers {
  /**
   * Runs a command on a snapshot of the tenant's file at `path` that holds everything committed before the call. The
   * promise rejects with the command's EngineError; on abort at once with the reason of `signal`; with `unavailable` if
   * too many reads wait, if threads ended twice while they ran this read, or after `close`.
   */
  read<N extends ReadCommandName>(
    path: string,
    name: N,
    input: ReadInput<N>,
    signal?: AbortSignal,
  ): Promise<ReadOutput<N>>;
  /** Returns the same readers, whose reads take their turn as those of the key with this id. */
  as(keyId: string): Readers;
  /** Ends what runs reads and closes its files. Reads that have not ended reject. */
  close(): Promise<void>;
}

/** What commands on this thread work with, except for the file. */
export type ReadParts = Omit<ReadContext, 'open'>;

/** Creates readers that run commands on the calling thread, over the pool's files. `close` leaves the pool open. */
export function createInlineReaders(pool: TenantPool, parts: ReadParts): Readers {
  const readers: Readers = {
    read: (path, name, input, signal) => runCommand({ ...parts, open: () => pool.get(path) }, name, input, signal),
    as: () => readers,
    close: async () => {},
  };
  return readers;
}

/**
 * Tells whether a part of a result is still to come: the promise in its field `later`, for what nobody needs to wait
 * for. A thread sends the rest of the result at once.
 */
export function hasLater(value: unknown): value is { readonly later: Promise<unknown> } {
  return typeof value === 'object' && value !== null && 'later' in value && value.later instanceof Promise;
}

/** Runs a command by its name. */
export async function runCommand<N extends ReadCommandName>(
  context: ReadContext,
  name: N,
  input: ReadInput<N>,
  signal?: AbortSignal,
): Promise<ReadOutput<N>> {
  type Command = (context: ReadContext, input: ReadInput<N>, signal?: AbortSignal) => Promise<ReadOutput<N>>;
  return (READ_COMMANDS[name] as unknown as Command)(context, input, signal);
}
