/** How the adapters reach a Cairn server. This folder imports nothing of the engine: an agent needs no database. */

/** Where a Cairn server is, and how it is called. */
export interface CairnOptions {
  /** Address of the server, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** Key sent with every request; left out, none is sent. */
  readonly apiKey?: string | undefined;
  /** Longest time that a request may take, ms; 30,000 by default. */
  readonly timeoutMs?: number | undefined;
  /** The function that sends requests; the global `fetch` by default. */
  readonly fetch?: typeof fetch | undefined;
}

/** A request that Cairn refused, or that found no server that speaks its language. */
export class CairnError extends Error {
  override readonly name = 'CairnError';
  /** HTTP status of the reply. */
  readonly status: number;
  /** Error code of the reply, such as `not_found`; '' if it has none. */
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/**
 * Sends a request and returns the JSON of its reply; undefined if it has no content.
 * @throws CairnError for a reply other than 2xx; what `fetch` throws if there is none in time
 */
export type Send = (method: string, path: string, body?: object) => Promise<unknown>;

const DEFAULT_TIMEOUT_MS = 30_000;

export function connect({ url, apiKey, timeoutMs = DEFAULT_TIMEOUT_MS, fetch: send = fetch }: CairnOptions): Send {
  const base = url.replace(/\/+$/, '');
  return async (method, path, body) => {
    const response = await send(base + path, {
      method,
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await response.text();
    if (response.ok) return text === '' ? undefined : (JSON.parse(text) as unknown);
    const { code = '', detail = '' } = problemOf(text);
    throw new CairnError(response.status, code, `${method} ${path}: ${response.status}${detail && `: ${detail}`}`);
  };
}

function problemOf(text: string): { readonly code?: string; readonly detail?: string } {
  try {
    return JSON.parse(text) as { readonly code?: string; readonly detail?: string };
  } catch {
    return {};
  }
}
