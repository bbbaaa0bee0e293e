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

export const ERROR_CODES = Object.keys(HTTP_STATUS) as [ErrorCode, ...ErrorCode[]];

/**
 * The one shape of every error reply: RFC 9457, plus `code` to branch on, a line a problem, and the id to find the log.
 */
export const problemSchema = z
  .strictObject({
    type: z.literal('about:blank'),
    title: z.string().describe("The status's own words."),
    status: z.int().min(400).max(599),
    detail: z.string().describe('For people: what was wrong and what is allowed, at most three problems of it.'),
    code: z.enum(ERROR_CODES).describe('For programs to branch on.'),
    errors: z.array(z.string()).optional().describe('A line for each problem, at most 20.'),
    request_id: z.string().describe('Also in `x-request-id`; a failure of the server is logged under it.'),
  })
  .meta({ id: 'Problem' });
export type Problem = Wire<typeof problemSchema>;
