import { limitTime, unscheduledMs } from '../limit-time.ts';

/** Limits of size and time of a request, and the errors for a request that exceeds them. */
interface ReplyBounds {
  /** Greatest size of a reply (bytes), counted after decompression. */
  readonly maxBytes: number;
  /** Creates the error for a reply over `maxBytes`; `what` is a phrase such as "is longer than 100 bytes". */
  readonly refused: (what: string) => Error;
  /**
   * Time limit (ms) of a call, from connecting to the last byte. Time for which this thread had no processor does not
   * count, up to 60 times the limit. If the limit is left out, only the request's own signal ends a call.
   */
  readonly timeLimit?: {
    readonly ms: number;
    /** Creates the error for a call that took longer than `ms`. */
    readonly tooLong: () => Error;
  };
}

/**
 * Creates a `fetch` that resolves only when the whole body has arrived, so that a time limit also covers the body of a
 * failed reply. It throws the error of `refused` for a body that is too long, that of `tooLong` if the time limit
 * passes, and the errors of `fetch`. A redirect is not followed, since texts and keys go to the configured host only:
 * the reply is returned as it came, with its status 3xx.
 */
export function boundedFetch({ maxBytes, refused, timeLimit }: ReplyBounds): typeof fetch {
  const fetchWhole = async (...[input, init]: Parameters<typeof fetch>): Promise<Response> => {
    const response = await fetch(input, { ...init, redirect: 'manual' });
    const parts: Uint8Array[] = [];
    let bytes = 0;
    // An error in the loop cancels the body, which closes the connection.
    for await (const part of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      bytes += part.byteLength;
      if (bytes > maxBytes) throw refused(`is longer than ${maxBytes} bytes`);
      parts.push(part);
    }
    const { status, statusText, headers } = response;
    return new Response(bytes === 0 ? null : Buffer.concat(parts), { status, statusText, headers });
  };
  if (timeLimit === undefined) return fetchWhole;
  return async (input, init) => {
    const timeout = new AbortController();
    const endLimit = limitTime({
      timeoutMs: timeLimit.ms,
      unscheduledMs: () => unscheduledMs('thread-self'),
      expire: () => timeout.abort(),
    });
    const signal = init?.signal ? AbortSignal.any([init.signal, timeout.signal]) : timeout.signal;
    try {
      return await fetchWhole(input, { ...init, signal });
    } catch (error) {
      throw timeout.signal.aborted && !init?.signal?.aborted ? timeLimit.tooLong() : error;
    } finally {
      endLimit();
    }
  };
}
