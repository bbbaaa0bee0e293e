import type { Problem } from './generated/types.ts';

/**
 * Kind of a failure. The server's own codes are those of the API, such as `not_found`. The client adds four.
 * `unreachable`: no reply came, so it is unknown whether the request had an effect. `timeout`: no reply came in time,
 * so that this is unknown as well, or the wait for background work took too long. `no_cairn`: the server at this
 * address is not a Cairn server, or redirects. `job_failed`: background work ended without success.
 */
export type CairnErrorCode = Problem['code'] | 'unreachable' | 'timeout' | 'no_cairn' | 'job_failed';

interface CairnErrorDetails {
  readonly status?: number;
  readonly problem?: Problem;
  readonly requestId?: string;
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** Error of a request that failed. The message is for people; programs branch on `code`. It never contains the key. */
export class CairnError extends Error {
  override readonly name = 'CairnError';
  readonly code: CairnErrorCode;
  /** HTTP status of the reply; undefined if no reply came, or if its status was no error. */
  readonly status: number | undefined;
  /** Single problems of the request, such as wrong fields, one text for each; empty if the server named none. */
  readonly errors: readonly string[];
  /** Id under which the server logs the request; undefined if no reply came or it names none. */
  readonly requestId: string | undefined;
  /** Time after which to send the request again (ms); undefined if the server named none. */
  readonly retryAfterMs: number | undefined;
  /** True if the server says that the change may be stored although it failed, as the answer to its commit was lost. */
  readonly mayBeWritten: boolean;

  constructor(code: CairnErrorCode, message: string, details: CairnErrorDetails = {}) {
    super(message, details.cause === undefined ? {} : { cause: details.cause });
    this.code = code;
    this.status = details.status;
    this.errors = details.problem?.errors ?? [];
    this.requestId = details.requestId ?? details.problem?.request_id;
    this.retryAfterMs = details.retryAfterMs;
    this.mayBeWritten = details.problem?.may_be_written ?? false;
  }
}

/** Tells whether a value is a `CairnError` and, if codes are given, has one of them. */
export function isCairnError(error: unknown, ...codes: readonly CairnErrorCode[]): error is CairnError {
  return error instanceof CairnError && (codes.length === 0 || codes.includes(error.code));
}

/**
 * Makes the error of a reply whose status is not 2xx. It reads the reply's body. A body that is not a problem of Cairn
 * gives the code `unavailable` for 429, 502, 503 and 504, and else `no_cairn`.
 */
export async function errorOfReply(response: Response): Promise<CairnError> {
  const { status, headers } = response;
  const requestId = headers.get('x-request-id') ?? undefined;
  const retryAfterMs = waitOf(headers.get('retry-after') ?? '');
  const common = {
    status,
    ...(requestId === undefined ? {} : { requestId }),
    ...(retryAfterMs > 0 ? { retryAfterMs } : {}),
  };
  const problem = await readProblem(response);
  if (problem !== undefined) return new CairnError(problem.code, problem.detail, { ...common, problem });
  const isBusy = status === 429 || status === 502 || status === 503 || status === 504;
  return new CairnError(isBusy ? 'unavailable' : 'no_cairn', `status ${status}, without a description`, common);
}

/**
 * Reads the header `Retry-After`, which holds seconds or, with some proxies, a date.
 * @returns the time to wait (ms); NaN or less than 1 if the header is empty, wrong or in the past
 */
function waitOf(retryAfter: string): number {
  return /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1000 : Date.parse(retryAfter) - Date.now();
}

async function readProblem(response: Response): Promise<Problem | undefined> {
  try {
    const body = (await response.json()) as Partial<Problem> | null;
    return typeof body?.code === 'string' && typeof body.detail === 'string' ? (body as Problem) : undefined;
  } catch {
    return undefined;
  }
}
