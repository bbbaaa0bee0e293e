import type { Problem } from './generated/types.ts';

/**
 * Kind of a failure. The server's own codes are those of the API. `unreachable`: no reply came, so whether the request
 * had an effect is unknown. `timeout`: no reply came in time. `no_cairn`: what answered is no Cairn server.
 * `job_failed`: background work ended without success.
 */
export type CairnErrorCode = Problem['code'] | 'unreachable' | 'timeout' | 'no_cairn' | 'job_failed';

interface CairnErrorDetails {
  readonly status?: number;
  readonly problem?: Problem;
  readonly requestId?: string;
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** Every failure of a request. The message is for people; programs branch on `code`. It never holds the key. */
export class CairnError extends Error {
  override readonly name = 'CairnError';
  readonly code: CairnErrorCode;
  /** HTTP status; undefined if no reply came. */
  readonly status: number | undefined;
  /** Each problem of the request on a line of its own; empty if the server named none. */
  readonly errors: readonly string[];
  /** Id under which the server's log has the request; undefined if no reply came. */
  readonly requestId: string | undefined;
  /** Time after which to ask again, in milliseconds; undefined if the server named none. */
  readonly retryAfterMs: number | undefined;

  constructor(code: CairnErrorCode, message: string, details: CairnErrorDetails = {}) {
    super(message, details.cause === undefined ? {} : { cause: details.cause });
    this.code = code;
    this.status = details.status;
    this.errors = details.problem?.errors ?? [];
    this.requestId = details.requestId ?? details.problem?.request_id;
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** Whether a value is a `CairnError`, and if codes are given, one of these. */
export function isCairnError(error: unknown, ...codes: readonly CairnErrorCode[]): error is CairnError {
  return error instanceof CairnError && (codes.length === 0 || codes.includes(error.code));
}

/** Makes the error of a reply that is no success. Reads the reply's body. */
export async function errorOfReply(response: Response): Promise<CairnError> {
  const { status, headers } = response;
  const requestId = headers.get('x-request-id') ?? undefined;
  const seconds = Number(headers.get('retry-after'));
  const common = {
    status,
    ...(requestId === undefined ? {} : { requestId }),
    ...(seconds > 0 ? { retryAfterMs: seconds * 1000 } : {}),
  };
  const problem = await readProblem(response);
  if (problem !== undefined) return new CairnError(problem.code, problem.detail, { ...common, problem });
  const isBusy = status === 429 || status === 502 || status === 503 || status === 504;
  return new CairnError(isBusy ? 'unavailable' : 'no_cairn', `status ${status}, without a description`, common);
}

async function readProblem(response: Response): Promise<Problem | undefined> {
  try {
    const body = (await response.json()) as Partial<Problem> | null;
    return typeof body?.code === 'string' && typeof body.detail === 'string' ? (body as Problem) : undefined;
  } catch {
    return undefined;
  }
}
