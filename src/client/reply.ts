/** What a call of an operation returns. */

/** What one call may say besides its input. */
export interface CallOptions {
  /** Aborts the call with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Longest time of one attempt, in milliseconds; the client's by default. */
  readonly timeoutMs?: number | undefined;
  /** Most attempts after the first; the client's by default. */
  readonly retries?: number | undefined;
  /** The call's idempotency key, where the operation takes one; a new one by default, none if `false`. */
  readonly idempotencyKey?: string | false | undefined;
  /** The version to change, as `etag` of a reply names it; the call is a `conflict` for any other version. */
  readonly ifMatch?: string | undefined;
  /** Your own id of the request, which the server's log holds. */
  readonly requestId?: string | undefined;
  /** More headers. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** A reply with what stands in its head. */
export interface WithHead<Value> {
  readonly value: Value;
  readonly status: number;
  readonly headers: Headers;
}

/** The value of a reply, once it is there. */
export interface Reply<Value> extends Promise<Value> {
  /** The value with the status and the headers of the reply. */
  withHead(): Promise<WithHead<Value>>;
}

/** A reply to a request that leaves background work. */
export interface Receipt<Value> extends Reply<Value> {
  /**
   * Waits until the work that the reply names is done, and returns the reply. A key must be allowed to read for it.
   * @param options `timeoutMs`: longest wait in all, 10 minutes by default
   * @throws CairnError `job_failed` if work ends without success, `timeout`
   */
  ready(options?: ReadyOptions): Promise<Value>;
}

export interface ReadyOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** One page of a list; iterated over, all entries from this page on, page by page as they are needed. */
export interface Page<Value, Entry> extends Reply<Value>, AsyncIterable<Entry> {}

/** A stream of server-sent events, which is opened when it is iterated over, and closed when the loop is left. */
export type Events<Event> = AsyncIterable<Event>;

export interface EventOf<Name extends string, Data> {
  readonly event: Name;
  readonly data: Data;
  readonly id?: string;
}
