import { z } from 'zod';

/** Headers that requests and replies carry, for the description of the API. */

export const idempotencyKeySchema = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, 'Idempotency-Key: expected 1 to 255 visible ASCII characters');

interface Header {
  readonly description: string;
  readonly schema: z.ZodType;
  readonly example: string | number;
}

/** Headers that a route reads; every route reads `x-request-id` and `traceparent` besides. */
export const REQUEST_HEADERS = {
  'idempotency-key': {
    description:
      'Made by you, so that a request that is sent again is answered like the first. With another body it is a 422.',
    schema: idempotencyKeySchema,
    example: 'import-2026-11-21-0001',
  },
  'if-match': {
    description: 'The `etag` of the version to change; any other version is a 409. `*` stands for any.',
    schema: z.string(),
    example: '"1"',
  },
  prefer: {
    description: '`wait=S` answers when the work is finished, or after S seconds, at most 60. `?wait` goes before it.',
    schema: z.string(),
    example: 'wait=5',
  },
  'x-request-id': {
    description: 'Your own name for the request, echoed in the reply and written to the log.',
    schema: z.string().regex(/^[\w.:-]{1,128}$/),
    example: 'import-17',
  },
  traceparent: {
    description: "W3C trace context: the request becomes part of its caller's trace where the server traces.",
    schema: z.string(),
    example: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  },
} as const satisfies Record<string, Header>;
export type RequestHeader = keyof typeof REQUEST_HEADERS;

/** Headers that replies carry besides those of every HTTP reply. */
export const REPLY_HEADERS = {
  'x-request-id': {
    description: 'Names the request: yours if you sent one, else a new one.',
    schema: z.string(),
    example: '8f11fde4-6a5d-4a47-b67e-466a1fcaff60',
  },
  location: {
    description: 'Where the job or the document is.',
    schema: z.string(),
    example: '/jobs/01a1fe39-06ea-73ec-9224-78cb00b74994',
  },
  etag: {
    description: "The memory's version, for `If-Match`.",
    schema: z.string(),
    example: '"1"',
  },
  'idempotent-replayed': {
    description: '`true` where the key was known and this is the first outcome again.',
    schema: z.literal('true'),
    example: 'true',
  },
  'retry-after': {
    description: 'Seconds to wait before trying again.',
    schema: z.int().min(1),
    example: 5,
  },
  'www-authenticate': {
    description: 'How to send a key.',
    schema: z.string(),
    example: 'Bearer realm="cairn"',
  },
} as const satisfies Record<string, Header>;
export type ReplyHeader = keyof typeof REPLY_HEADERS;
