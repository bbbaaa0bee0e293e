import { CairnError, errorOfReply } from './errors.ts';

/** A function such as the global `fetch`. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** How requests are sent: the connection of a client, with what one call changes. */
export interface Sending {
  readonly fetch: Fetch;
  /** Longest time of one attempt until its reply has arrived, in milliseconds. */
  readonly timeoutMs: number;
  /** Most attempts after the first. */
  readonly retries: number;
  readonly signal: AbortSignal | undefined;
}

/** A request of the client before it is sent: what goes over the wire, and whether it may go twice. */
export interface Outgoing {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Left out for a request without a body. A `FormData` or string can be sent more than once. */
  readonly body?: string | FormData;
  /** Whether to send the request again if no reply came, or one from a gateway. */
  readonly isRepeatable: boolean;
}

/** Longest wait that a server may ask for, in milliseconds; a longer one is left to the caller. */
const MAX_WAIT_MS = 60_000;
const FIRST_WAIT_MS = 500;
const LAST_WAIT_MS = 8_000;

/**
 * Sends a request until it succeeds. A server that is busy (429, 503) has done nothing yet, so every request is
 * repeated then; if the connection breaks off or a gateway answers (502, 504), only one that may be repeated is.
 * @param read reads a successful reply, within the time limit of the attempt
 * @throws CairnError; the reason of the signal if the caller aborts
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
      signal: AbortSignal.any(signals),
      ...(body === undefined ? {} : { body }),
    });
    if (response.ok) return await read(response);
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

function reasonOf(error: unknown): string {
  const { message, cause } = error as { readonly message?: string; readonly cause?: { readonly message?: string } };
  return cause?.message || message || 'the connection failed';
}

/** @returns milliseconds until the next attempt; undefined if the request must not be repeated */
function waitBefore(error: unknown, isRepeatable: boolean, attempt: number): number | undefined {
  if (!(error instanceof CairnError)) return undefined;
  const { status, code, retryAfterMs } = error;
  const isBusy = status === 429 || status === 503;
  const isLost = code === 'unreachable' || status === 502 || status === 504;
  if (!isBusy && !(isLost && isRepeatable)) return undefined;
  if (retryAfterMs !== undefined) return retryAfterMs <= MAX_WAIT_MS ? retryAfterMs : undefined;
  // Up to a quarter less at random, so that clients that failed together do not come back together.
  return Math.min(LAST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempt) * (1 - Math.random() / 4);
}

/** Waits. Throws the reason of the signal if it aborts. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
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
