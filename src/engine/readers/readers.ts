import type { TenantPool } from '../tenant-file/tenant-pool.ts';
import { type FewRowsName, READ_COMMANDS, type ReadCommandName, type ReadInput, type ReadOutput } from './commands.ts';
import { languageModelOf } from '../providers/language-model-of.ts';
import type { ThreadServices } from './read.ts';
import type { ReadContext } from './read-context.ts';

/** Runs read commands, on threads of their own or on this one. */
export interface Readers {
  /**
   * Runs a command on the tenant's file at `path`; it sees everything that was committed before the call. With
   * OM_DATABASE_READ_URL some commands run on a standby; they then see what `see` names and what clients wrote through
   * this process, and may lack later commits of other processes. The promise rejects with the command's EngineError,
   * and on an abort with the reason of `signal`, at once if threads run the reads. If threads run them, it also rejects
   * with `unavailable` if too many reads wait, if the file changes faster than it can be read, if two threads ended
   * while they ran this read, and after `close`.
   */
  read<N extends ReadCommandName>(
    path: string,
    name: N,
    input: ReadInput<N>,
    signal?: AbortSignal,
  ): Promise<ReadOutput<N>>;
  /**
   * Runs a command that reads a few rows. If the tenant is a file, it runs at once on the calling thread, which takes
   * less time than a message to another thread. If it is in PostgreSQL, it runs as `read` does, since each statement
   * waits for the server.
   */
  readFew<N extends FewRowsName>(path: string, name: N, input: ReadInput<N>): Promise<ReadOutput<N>>;
  /**
   * Lets later reads of the tenant at `path` see a state at least as new as `position` (`Store.position`), also where a
   * standby answers them.
   */
  see(path: string, position: number): void;
  /**
   * Returns the same readers for the API key with this id, so that threads serve the reads of this key and of other
   * keys in turn.
   */
  as(keyId: string): Readers;
  /** Closes the tenant's file at `path` on the threads, if there are any; a later read opens it again. */
  forget(path: string): void;
  /** Ends the threads that run reads, if there are any. Reads that have not ended reject. */
  close(): Promise<void>;
}

/** What the read commands of all tenants work with. */
type ReadParts = Omit<ReadContext, 'open' | 'querySourceOf'> & Pick<ThreadServices, 'querySourceOf'>;

/**
 * Creates readers that run commands on the calling thread, with the pool's files. `close` does nothing, so the pool
 * stays open.
 */
export function createInlineReaders(pool: TenantPool, parts: ReadParts): Readers {
  const read: Readers['read'] = (path, name, input, signal) =>
    runCommand(
      {
        ...{ ...parts, open: () => pool.get(path) },
        querySourceOf: (model) => parts.querySourceOf(model, path),
        languageModel: languageModelOf(path, parts.languageModel),
      },
      name,
      input,
      signal,
    );
  const readers: Readers = {
    read,
    readFew: read,
    // This thread reads where it is written.
    see() {},
    as: () => readers,
    forget() {},
    close: async () => {},
  };
  return readers;
}

/** Returns readers that run commands for a few rows by `here`, and all other commands by `readers`. */
export function withFewRowsHere(readers: Readers, here: Pick<Readers, 'readFew'>): Readers {
  return { ...readers, readFew: here.readFew, as: (keyId) => withFewRowsHere(readers.as(keyId), here) };
}

/**
 * Tells whether a result has a part that is still being computed: the promise in its field `later`, which no caller
 * needs to wait for. A thread sends the other fields of the result at once.
 */
export function hasLater(value: unknown): value is { readonly later: Promise<unknown> } {
  return typeof value === 'object' && value !== null && 'later' in value && value.later instanceof Promise;
}

/**
 * Runs a command by its name.
 * @throws whatever the command throws
 */
export async function runCommand<N extends ReadCommandName>(
  context: ReadContext,
  name: N,
  input: ReadInput<N>,
  signal?: AbortSignal,
): Promise<ReadOutput<N>> {
  type Command = (context: ReadContext, input: ReadInput<N>, signal?: AbortSignal) => Promise<ReadOutput<N>>;
  return (READ_COMMANDS[name] as unknown as Command)(context, input, signal);
}
