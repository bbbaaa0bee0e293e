import { CairnError, errorOfReply } from './errors.ts';

/** A function such as the global `fetch`. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Options for sending a request: those of the client, overridden by those of the call. */
export interface Sending {
  readonly fetch: Fetch;
  /** Longest time of one attempt until its whole reply has arrived (ms). */
  readonly timeoutMs: number;
  /** Greatest number of attempts after the first. */
  readonly retries: number;
  readonly signal: AbortSignal | undefined;
}

/** A request that is ready to be sent, and whether it may be repeated. */
export interface Outgoing {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined for a request without a body. A `FormData` or string can be sent more than once. */
  readonly body?: string | FormData;
  /**
   * Whether the request may be sent again if no reply came, or if a gateway answered 502 or 504, so that the request
   * may have been carried out.
   */
  readonly isRepeatable: boolean;
}

/**
 * Longest wait between two attempts (ms). If `Retry-After` asks for a longer wait, the call fails with the error
 * instead.
 */
const MAX_WAIT_MS = 60_000;
const FIRST_WAIT_MS = 500;
const LAST_WAIT_MS = 8_000;

/**
 * Sends a request, and repeats it up to `sending.retries` times. If the server is busy (429, 503), it has done nothing
 * yet, so every request is repeated. If the connection breaks off, a gateway answers 502 or 504, or the error has
 * `mayBeWritten`, only a request that may be sent twice is repeated. Attempts are 0.4 to 8 s apart, or as long as
 * `Retry-After` says. An attempt that times out is not repeated, nor one whose `Retry-After` is over a minute.
 * @param read reads a successful reply, within the time limit of the attempt
 * @throws CairnError after the last attempt; the reason of the signal if the caller aborts
 */
export async function send<Value>(
  outgoing: Outgoing,
  sending: Sending,
  read: (response: Response) => Promise<Value>,
): Promise<Value> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await sendOnce(outgoing, sending, read);
    } catch (error) {
      sending.signal?.throwIfAborted();
      const waitMs = waitBefore(error, outgoing.isRepeatable, attempt);
      if (attempt >= sending.retries || waitMs === undefined) throw error;
      await pause(waitMs, sending.signal);
    }
  }
}

async function sendOnce<Value>(
  { method, url, headers, body }: Outgoing,
  { fetch, timeoutMs, signal }: Sending,
  read: (response: Response) => Promise<Value>,
): Promise<Value> {
  const timeout = new AbortController();
  // A timer cannot be longer.
  const timer = setTimeout(() => timeout.abort(), Math.min(timeoutMs, 2 ** 31 - 1));
  const signals = signal === undefined ? [timeout.signal] : [timeout.signal, signal];
  try {
    const response = await fetch(url, {
      method,
      headers,
      redirect: 'manual',
      signal: AbortSignal.any(signals),
      ...(body === undefined ? {} : { body }),
    });
    if (response.ok) return await read(response);
    const redirect = redirectOf(response, url);
    if (redirect !== undefined) throw new CairnError('no_cairn', redirect, { status: response.status });
    throw await errorOfReply(response);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof CairnError) throw error;
    if (timeout.signal.aborted) throw new CairnError('timeout', `no reply within ${timeoutMs} ms: ${method} ${url}`);
    throw new CairnError('unreachable', `no reply from ${new URL(url).origin}: ${reasonOf(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Returns the error message for a reply that is a redirect; undefined for any other reply. A redirect is not followed,
 * since the key would then be sent to the other address, too. A browser hides the status and the headers of such a
 * reply.
 * @param url the address to which the request was sent
 */
export function redirectOf({ type, status, headers }: Pick<Response, 'type' | 'status' | 'headers'>, url: string) {
  const location = headers.get('location');
  const isRedirect = type === 'opaqueredirect' || (location !== null && status >= 300 && status < 400);
  return isRedirect ? describeRedirect(location, url) : undefined;
}

/**
 * Returns the error message for a redirect. It names the addresses of the server and of the redirect, without query
 * strings, which may hold secrets.
 */
function describeRedirect(location: string | null, url: string): string {
  const isKnown = location !== null && URL.canParse(location, url);
  const target = isKnown ? new URL(location, url) : undefined;
  const shown = target === undefined ? 'another address' : `${target.protocol}//${target.host}${target.pathname}`;
  return `${new URL(url).origin} redirects to ${shown}, which is not followed: give the address of the server itself`;
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as { readonly message?: string; readonly cause?: { readonly message?: string } };
  return cause?.message || message || 'the connection failed';
}

/**
 * Returns the time until the next attempt (ms); undefined if the request must not be repeated, or the server asks for a
 * wait of more than a minute.
 * @param attempt number of the attempt that failed, from 0
 */
function waitBefore(error: unknown, isRepeatable: boolean, attempt: number): number | undefined {
  if (!(error instanceof CairnError)) return undefined;
  const { status, code, retryAfterMs, mayBeWritten } = error;
  const isBusy = (status === 429 || status === 503) && !mayBeWritten;
  const isLost = code === 'unreachable' || status === 502 || status === 504 || mayBeWritten;
  if (!isBusy && !(isLost && isRepeatable)) return undefined;
  if (retryAfterMs !== undefined) return retryAfterMs <= MAX_WAIT_MS ? retryAfterMs : undefined;
  // Up to a quarter less at random, so that clients that failed together do not come back together.
  return Math.min(LAST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempt) * (1 - Math.random() / 4);
}

/**
 * Time (ms) for which a call that waits anyway, such as for a job, repeats requests while the server is unreachable or
 * busy, as in a restart. It ends with the first failure after this time, so the last wait may go beyond it.
 */
const AWAY_MS = 60_000;

/**
 * Tells whether an error says that the server is unreachable or busy (429, 502, 503, 504), so that a later request may
 * succeed.
 */
export function isAway(error: unknown): error is CairnError {
  if (!(error instanceof CairnError)) return false;
  return error.code === 'unreachable' || [429, 502, 503, 504].includes(error.status ?? 0);
}

/**
 * Returns the time after which to send the next request to a server that is unreachable or busy (ms).
 * @param awaySince time of the first failure since the last success, Unix ms
 * @param leastMs shortest wait (ms), used if the server names none or a shorter one
 * @throws `error` itself if it does not say that the server is unreachable or busy, if the failures have lasted for
 *   more than a minute, or if the server asks for a wait of more than a minute
 */
export function waitForReturn(error: unknown, awaySince: number, leastMs: number): number {
  if (!isAway(error) || Date.now() - awaySince > AWAY_MS) throw error;
  const { retryAfterMs = 0 } = error;
  if (retryAfterMs > MAX_WAIT_MS) throw error;
  return Math.max(leastMs, retryAfterMs);
}

/**
 * Calls `ask`, and repeats it while the server is unreachable or busy, until a failure more than a minute after the
 * first. If `retries` is 0, it is called once.
 * @param ask sends a request that may safely be sent twice
 * @throws the error of `ask` if it is of another kind or the minute is over; the reason of the signal if it aborts
 */
export async function outlast<Value>(ask: () => Promise<Value>, { retries, signal }: Sending): Promise<Value> {
  let awaySince: number | undefined;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (retries === 0) throw error;
      awaySince ??= Date.now();
      await pause(waitForReturn(error, awaySince, FIRST_WAIT_MS), signal);
    }
  }
}

/** Waits for `ms`. Rejects with the reason of the signal if it aborts. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const abort = () => {
      clearTimeout(timer);
      reject(signal!.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', abort, { once: true });
  });
}
