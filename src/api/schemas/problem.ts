import { z } from 'zod';
import type { ErrorCode } from '../../engine/index.ts';
import type { Wire } from './values.ts';

/** HTTP status of each error code. A new code does not compile without one. */
export const HTTP_STATUS = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  too_large: 413,
  unsupported: 415,
  unprocessable: 422,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
  storage_full: 507,
} as const satisfies Record<ErrorCode, number>;

const ERROR_CODES = Object.keys(HTTP_STATUS) as [ErrorCode, ...ErrorCode[]];

/**
 * Shape of every error reply: RFC 9457, plus `code` for programs, one line for each problem, and the id of the request.
 */
export const problemSchema = z
  .strictObject({
    type: z.literal('about:blank'),
    title: z.string().describe('Standard text of the status.'),
    status: z.int().min(400).max(599),
    detail: z.string().describe('For people: what was wrong and what is allowed; at most three problems.'),
    code: z.enum(ERROR_CODES).describe('For programs: the kind of error.'),
    may_be_written: z
      .literal(true)
      .optional()
      .describe('With 503: the change may be stored although it failed, as the answer to its commit was lost.'),
    errors: z.array(z.string()).optional().describe('One line for each problem, at most 20.'),
    request_id: z
      .string()
      .describe('Id of the request, also in `x-request-id`; failures of the server are logged with it.'),
  })
  .meta({ id: 'Problem' });
export type Problem = Wire<typeof problemSchema>;
