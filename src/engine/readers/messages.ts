/** The messages between a process and its reader threads. */

import type { Config } from '../config.ts';
import type { SerialisedError } from '../errors.ts';
import type { Completion, LanguageModel } from '../ports.ts';
import type { FieldText } from '../store/packed-json.ts';
import type { ServerIdentity } from '../store/postgres/server-identity.ts';
import type { VectorSpace } from '../store/vectors.ts';
import type { SpaceIdentity } from '../tenant-file/open-tenant.ts';
import type { SharedFile } from '../tenant-file/shared-files.ts';
import type { ReadCommandName } from './commands.ts';
import type { RecordedSpan } from './span-recorder.ts';
import type { StandbyReport, StandbyUse } from './standby-reads.ts';

/** The data with which a reader thread is started. */
export interface ReaderThreadData {
  readonly config: Config;
  /** The vector spaces that the settings name, as in `OpenTenantOptions`; null where nothing is embedded. */
  readonly identity: SpaceIdentity | readonly SpaceIdentity[] | null;
  /** Provider and name of the process's language model; null without one. */
  readonly languageModel: Pick<LanguageModel, 'provider' | 'model'> | null;
  /** Identity of the server of OM_DATABASE_URL, by which a standby is known; null without OM_DATABASE_READ_URL. */
  readonly primary: ServerIdentity | null;
  /** Greatest number of reader threads of the process. Each is started once there is a read for it. */
  readonly threads: number;
  /** Number of the thread, by which the threads that share memory tell each other apart. */
  readonly reader: number;
}

/** The request to a language model. */
type CompletionRequest = Parameters<LanguageModel['complete']>[0];

/** A provider call that a thread leaves to its process, which has the limits, the caches and the log of calls. */
export type ProviderCall =
  | { readonly kind: 'embed'; readonly space: SpaceIdentity; readonly text: string }
  | { readonly kind: 'complete'; readonly request: CompletionRequest };
/** Results of provider calls, by their kind; a vector is null if the provider failed. */
export interface ProviderResults {
  readonly embed: Float32Array | null;
  readonly complete: Completion;
}

/** How a read or a provider call ended: with a value or with an error. */
export type Outcome =
  { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: SerialisedError };

/** A message from a process to one of its reader threads. */
export type ToThread =
  /** Runs a command. The answer is a `done` message with the same `id`. */
  | {
      readonly kind: 'read';
      readonly id: number;
      readonly path: string;
      readonly name: ReadCommandName;
      /** Input of the command, as `packInput` returns it. */
      readonly input: unknown;
      /** Whether the stages of a query are recorded as spans. */
      readonly isTraced: boolean;
      /** How the read uses the standby; null to read from the primary, or from the file. */
      readonly standby: StandbyUse | null;
    }
  /** Tells that the result of the read is no longer wanted. */
  | { readonly kind: 'cancel'; readonly id: number }
  /** Passes on the result of a provider call. */
  | { readonly kind: 'called'; readonly callId: number; readonly outcome: Outcome }
  /** Passes on the memory of a file that the threads share: the answer to `share`. */
  | { readonly kind: 'shared'; readonly path: string; readonly file: SharedFile }
  /** Asks the thread to close a file and to release its memory. A later read opens it again. */
  | { readonly kind: 'forget'; readonly path: string }
  /** Asks the thread to close every file. The answer is `closed`. */
  | { readonly kind: 'close' };

/** A message from a reader thread to its process. */
export type FromThread =
  | {
      readonly kind: 'done';
      readonly id: number;
      readonly outcome: Outcome;
      /** Fields that `packResult` took out of the value, as JSON texts. The process puts them back. */
      readonly texts: readonly FieldText[];
      /** Time from the start of the command to its end (ms), including the time that it waited for providers. */
      readonly ms: number;
      readonly spans: readonly RecordedSpan[];
      /**
       * Whether the field `later` of the value is a promise, whose outcome follows as a `later` message with the same
       * `id`.
       */
      readonly hasMore: boolean;
      /**
       * What became of a read that was to use the standby; null if it was not to, was aborted, or has the standby's
       * error as its outcome.
       */
      readonly standby: StandbyReport | null;
    }
  | { readonly kind: 'later'; readonly id: number; readonly outcome: Outcome }
  /** Asks for a provider call for the read `id`. The answer is a `called` message with the same `callId`. */
  | { readonly kind: 'call'; readonly id: number; readonly callId: number; readonly call: ProviderCall }
  | {
      readonly kind: 'log';
      readonly level: 'debug' | 'info' | 'warn' | 'error';
      readonly fields: object;
      readonly event: string;
    }
  /** Asks for the memory of a file that the threads share, with the vectors of all `spaces`. The answer is `shared`. */
  | { readonly kind: 'share'; readonly path: string; readonly spaces: readonly VectorSpace[] }
  /**
   * Reports that a thread has ended while it changed shared memory, so that the memory with the number `no` may be
   * inconsistent.
   */
  | { readonly kind: 'lost'; readonly path: string; readonly no: number }
  /** Reports that the word index of the file at `path` has a format that only SQLite itself can read. */
  | { readonly kind: 'unknownWordFormat'; readonly path: string }
  | { readonly kind: 'closed' };
