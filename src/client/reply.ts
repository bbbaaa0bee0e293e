/** Options of one call, besides its input. */
export interface CallOptions {
  /** Aborts the call, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Longest time of one attempt (ms); that of the client by default. */
  readonly timeoutMs?: number | undefined;
  /** Greatest number of attempts after the first (see `ClientOptions`); that of the client by default. */
  readonly retries?: number | undefined;
  /** The call's idempotency key, if the operation takes one. By default a new one is made; `false` sends none. */
  readonly idempotencyKey?: string | false | undefined;
  /**
   * The version that is to be changed, as the `etag` of an earlier reply gives it. If the resource has another version,
   * or is an item that was stored anew since, the call throws `conflict`. By default any version is changed.
   */
  readonly ifMatch?: string | undefined;
  /** An id of the caller's choice under which the server logs the request. */
  readonly requestId?: string | undefined;
  /** Further headers of this request. They replace headers of the same name that the client sets. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** A reply with its status and headers. */
export interface WithHead<Value> {
  readonly value: Value;
  readonly status: number;
  readonly headers: Headers;
}

/**
 * The promise of a reply's value. It rejects with a CairnError, with the reason of the caller's signal, or with what
 * `key` throws.
 */
export interface Reply<Value> extends Promise<Value> {
  /** Returns the value together with the status and the headers of the reply. */
  withHead(): Promise<WithHead<Value>>;
}

/** The promise of the reply to a request that starts background work. `ready` waits for the end of this work. */
export interface Receipt<Value> extends Reply<Value> {
  /**
   * Waits until all jobs that the reply names are done, and returns the reply. A job that no longer exists counts as
   * done. The key must be allowed to read.
   * @param options `timeoutMs`: longest wait after the reply, by default 10 minutes; `signal`: ends this wait with its
   *   reason
   * @throws CairnError `job_failed` if a job ends without success, `timeout` after `timeoutMs`, or the error of the
   *   request or of reading a job; the reason of the signal if it aborts
   */
  ready(options?: ReadyOptions): Promise<Value>;
}

export interface ReadyOptions {
  /** Longest wait for all jobs together, from the reply on (ms); 600,000 by default. */
  readonly timeoutMs?: number;
  /** Ends the wait for the jobs, which then rejects with the signal's reason. It does not abort the request. */
  readonly signal?: AbortSignal;
}

/**
 * The promise of one page of a list. Iterating over it yields all entries from this page on; further pages are read
 * when they are needed.
 */
export interface Page<Value, Entry> extends Reply<Value>, AsyncIterable<Entry> {}

/**
 * A stream of server-sent events. It is opened when it is iterated over, and closed when the loop is left. If it breaks
 * off, the client tries for about a minute to open it again, except with `retries: 0`. The feed of all changes then
 * goes on after its last event; the stream of a job or document begins anew, so an event may come twice. The loop ends
 * when the job or document of the stream reaches its final state or is removed; that over the feed of all changes does
 * not end by itself. In all other cases it throws a CairnError, the reason of the caller's signal, or what `key`
 * throws.
 */
export type Events<Event> = AsyncIterable<Event>;

export interface EventOf<Name extends string, Data> {
  readonly event: Name;
  readonly data: Data;
  readonly id?: string;
}
