/** The messages between a process and its reader threads. */

import type { Config } from '../config.ts';
import type { SerialisedError } from '../errors.ts';
import type { Completion, LanguageModel } from '../ports.ts';
import type { VectorSpace } from '../store/vectors.ts';
import type { SpaceIdentity } from '../tenant-file/open-tenant.ts';
import type { SharedFile } from '../tenant-file/shared-files.ts';
import type { ReadCommandName } from './commands.ts';
import type { RecordedSpan } from './span-recorder.ts';

/** What a reader thread is started with. */
export interface ReaderThreadData {
  readonly config: Config;
  /** The vector spaces that the settings name, as in `OpenTenantOptions`; null where nothing is embedded. */
  readonly identity: SpaceIdentity | readonly SpaceIdentity[] | null;
  /** Names of the language model of the process; null without one. */
  readonly languageModel: Pick<LanguageModel, 'provider' | 'model'> | null;
  /** Number of the thread among those that share memory. */
  readonly reader: number;
}

/** What a language model is asked. */
type CompletionRequest = Parameters<LanguageModel['complete']>[0];

/**
 * A call of a provider that a thread has its process make, since the process holds the limits, the caches and the log
 * of calls.
 */
export type ProviderCall =
  | { readonly kind: 'embed'; readonly space: SpaceIdentity; readonly text: string }
  | { readonly kind: 'complete'; readonly request: CompletionRequest };
/** Results of provider calls by their kind; a vector is null if the provider failed. */
export interface ProviderResults {
  readonly embed: Float32Array | null;
  readonly complete: Completion;
}

/** How a read or a provider call ended. */
export type Outcome =
  { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: SerialisedError };

/** A message to a thread. */
export type ToThread =
  /** Run a command. The answer is a `done` with the same `id`. */
  | {
      readonly kind: 'read';
      readonly id: number;
      readonly path: string;
      readonly name: ReadCommandName;
      readonly input: unknown;
      /** Whether the stages of a query are recorded as spans. */
      readonly isTraced: boolean;
    }
  /** Nobody waits for the read any more. */
  | { readonly kind: 'cancel'; readonly id: number }
  /** The result of a provider call. */
  | { readonly kind: 'called'; readonly callId: number; readonly outcome: Outcome }
  /** Memory of a file that the threads share; the answer to `share`. */
  | { readonly kind: 'shared'; readonly path: string; readonly file: SharedFile }
  /** Give the memory of a file back, which was not used for long. */
  | { readonly kind: 'forget'; readonly path: string }
  /** Close every file. The answer is `closed`. */
  | { readonly kind: 'close' };

/** A message from a thread. */
export type FromThread =
  | {
      readonly kind: 'done';
      readonly id: number;
      readonly outcome: Outcome;
      /** Time from the beginning of the command to its end (ms), with the time that it waited for providers. */
      readonly ms: number;
      readonly spans: readonly RecordedSpan[];
      /** Whether the field `later` of the value is a promise whose outcome follows as a `later` with the same `id`. */
      readonly hasMore: boolean;
    }
  | { readonly kind: 'later'; readonly id: number; readonly outcome: Outcome }
  /** Make a provider call for the read `id`. The answer is a `called` with the same `callId`. */
  | { readonly kind: 'call'; readonly id: number; readonly callId: number; readonly call: ProviderCall }
  | {
      readonly kind: 'log';
      readonly level: 'debug' | 'info' | 'warn' | 'error';
      readonly fields: object;
      readonly event: string;
    }
  /** Send the memory of a file that the threads share, with vectors of all of `spaces`. The answer is `shared`. */
  | { readonly kind: 'share'; readonly path: string; readonly spaces: readonly VectorSpace[] }
  /** Another thread left the memory with the number `no` half changed. */
  | { readonly kind: 'lost'; readonly path: string; readonly no: number }
  /** The word index of the file at `path` has a format that only SQLite itself reads. */
  | { readonly kind: 'unknownWordFormat'; readonly path: string }
  | { readonly kind: 'closed' };
