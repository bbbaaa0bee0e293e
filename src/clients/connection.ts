/**
 * Connects the adapters to a Cairn server. This folder imports nothing of the engine, since an agent needs no database.
 */

/** Address of a Cairn server, and options of its requests. */
export interface CairnOptions {
  /** Address of the server, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** Key sent with every request; by default none is sent. */
  readonly apiKey?: string | undefined;
  /** Longest time that a request may take (ms); 30,000 by default. */
  readonly timeoutMs?: number | undefined;
  /** Function that sends requests; the global `fetch` by default. */
  readonly fetch?: typeof fetch | undefined;
}

/** Error of a request that was answered with a status other than 2xx, by Cairn or by another server at its address. */
export class CairnError extends Error {
  override readonly name = 'CairnError';
  /** HTTP status of the reply. */
  readonly status: number;
  /** Error code of the reply, such as `not_found`; '' if the reply is not a problem of Cairn. */
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/**
 * Sends a request and returns the JSON of its reply; undefined if the reply has no content. The request is sent only
 * once.
 * @throws CairnError for a reply other than 2xx; what `fetch` throws if the connection fails or the whole reply does
 *   not come in time; SyntaxError for a reply of 2xx that is no JSON
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
