/** Sends requests to the service from which this page was loaded, and notices when it does not answer. */
import { signal } from '@preact/signals';
import { chosenTenant } from './address.ts';
import { texts } from './texts.ts';
import type { Problem } from './types.ts';

/**
 * False from a request to which no answer came (an aborted request does not count) until the service answers again.
 * While it is false, `retryUntilUp` sends a request every second to find out whether the service answers.
 */
export const isUp = signal(true);
/** Number of times that the service answered again after an outage. Views load their data again when it rises. */
export const returns = signal(0);

/** Pause between two checks whether the service is back, and before an event stream is opened again (ms). */
const RETRY_MS = 1_000;

/** Error of a request that was refused or got no answer. */
export class Refusal extends Error {
  /** HTTP status; 0 if no answer came, or the request was aborted. */
  readonly status: number;
  /**
   * Error code of the reply, such as `not_found`; `offline` if no answer came, `aborted` if the request was aborted.
   */
  readonly code: string;
  /** Problems of single fields, one text for each; empty if the service named none. */
  readonly errors: readonly string[];

  constructor(message: string, status: number, code: string, errors: readonly string[] = []) {
    super(message);
    this.status = status;
    this.code = code;
    this.errors = errors;
  }
}

interface RequestParts {
  /** Body of the request: a form is sent as it is, any other value as JSON. */
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  /** True if the request must not send the header that chooses a tenant, such as a request about the session. */
  readonly omitsTenant?: boolean;
}

let onUnauthenticated = () => {};
/** Sets the function that is called when a request is refused with 401: the session has ended, or a key is wrong. */
export function whenUnauthenticated(then: () => void): void {
  onUnauthenticated = then;
}

/**
 * Sends a request and returns its reply, parsed if it is JSON, and else as a text.
 * @throws Refusal if the request is refused, gets no whole answer, is aborted, or is answered by what is no JSON,
 *   though it says so
 */
export async function send<Reply>(method: string, path: string, parts: RequestParts = {}): Promise<Reply> {
  const response = await request(method, path, parts);
  const isJson = response.headers.get('content-type')?.includes('json') ?? false;
  const text = await response.text().catch(noAnswer);
  if (!isJson) return text as Reply;
  try {
    return JSON.parse(text) as Reply;
  } catch {
    throw new Refusal(texts.answered(response.status), response.status, 'internal');
  }
}

async function request(method: string, path: string, parts: RequestParts) {
  const { body, query = {}, signal, headers, omitsTenant = false } = parts;
  const response = await fetch(urlOf(path, query), {
    method,
    headers: { ...headersOf(body, omitsTenant ? undefined : chosenTenant.value), ...headers },
    ...(body === undefined ? {} : { body: body instanceof FormData ? body : JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  }).catch(noAnswer);
  if (response.ok) return response;
  throw await refusalOf(response);
}

/**
 * Notes that the service does not answer, unless the request was aborted.
 * @throws Refusal always
 */
function noAnswer(error: unknown): never {
  const isAborted = (error as Error).name === 'AbortError';
  if (!isAborted) loseService();
  throw new Refusal(texts.noAnswer, 0, isAborted ? 'aborted' : 'offline');
}

function headersOf(body: unknown, tenant: string | undefined): Record<string, string> {
  return {
    'x-cairn-console': '1',
    ...(tenant === undefined ? {} : { 'x-cairn-tenant': tenant }),
    ...(body === undefined || body instanceof FormData ? {} : { 'content-type': 'application/json' }),
  };
}

/** Returns the address of a path, relative to the page, so that a proxy may serve both under another path. */
function urlOf(path: string, query: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const params = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return `.${path}${given.length === 0 ? '' : `?${params.toString()}`}`;
}

async function refusalOf(response: Response): Promise<Refusal> {
  const problem = (await response.json().catch(() => ({}))) as Partial<Problem>;
  if (response.status === 401) onUnauthenticated();
  const detail = problem.detail ?? texts.answered(response.status);
  return new Refusal(detail, response.status, problem.code ?? 'internal', problem.errors);
}

function loseService(): void {
  if (!isUp.value) return;
  isUp.value = false;
  void retryUntilUp();
}

async function retryUntilUp(): Promise<void> {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    const answer = await fetch('./health').catch(() => undefined);
    if (answer === undefined) continue;
    isUp.value = true;
    returns.value++;
    return;
  }
}

/**
 * Reads an event stream, and opens it again a second after the connection broke off, until `onEvent` or `stop` ends it.
 * It is read with `fetch`, because an `EventSource` cannot send the header of the tenant.
 * @param onEvent called with the name and the data of each event; returns true to end the stream. If it throws, the
 *   error is lost, and the stream is opened again
 * @throws Refusal if the service refuses the stream, also when it is opened again, and also while it is busy
 */
export async function follow(
  path: string,
  onEvent: (event: string, data: unknown) => boolean,
  stop: AbortSignal,
): Promise<void> {
  while (!stop.aborted) {
    try {
      const response = await request('GET', path, { signal: stop });
      if (await readEvents(response.body!, onEvent)) return;
    } catch (error) {
      if (error instanceof Refusal && error.status > 0) throw error;
    }
    if (!stop.aborted) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

async function readEvents(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  onEvent: (event: string, data: unknown) => boolean,
): Promise<boolean> {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return false;
    text += value;
    const blocks = text.split(/\r?\n\r?\n/);
    text = blocks.pop()!;
    for (const block of blocks) {
      // JSON may hold separators of Unicode, at which a `.` or `$` would end.
      const name = /^event: ([^\r\n]*)/m.exec(block)?.[1];
      const data = /^data: ([^\r\n]*)/m.exec(block)?.[1];
      if (name === undefined || data === undefined) continue;
      if (!onEvent(name, JSON.parse(data))) continue;
      await reader.cancel();
      return true;
    }
  }
}
