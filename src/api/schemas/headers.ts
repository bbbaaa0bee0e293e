/** Headers of requests and replies, for the API description. */
import { z } from 'zod';

/** Schema of the header `Idempotency-Key`: 1 to 255 visible ASCII characters, without spaces. */
export const idempotencyKeySchema = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, 'Idempotency-Key: expected 1 to 255 visible ASCII characters');

interface Header {
  readonly description: string;
  readonly schema: z.ZodType;
  readonly example: string | number;
}

/** Headers that a route may declare as read. Every route reads `x-request-id` and `traceparent`. */
export const REQUEST_HEADERS = {
  'idempotency-key': {
    description:
      'A key of your choice. A repeated request with the same key and body gets the first reply again; with ' +
      'another body, a 422.',
    schema: idempotencyKeySchema,
    example: 'import-2026-11-21-0001',
  },
  'last-event-id': {
    description: 'The `id` of the last event that was received, as browsers send it when they connect again.',
    schema: z.string(),
    example: '5f0c1a7e.2s',
  },
  'if-match': {
    description:
      'The `etag` of what to change or erase; for any other version, and for an item that was stored anew since, ' +
      'the reply is a 409. A version alone, such as `"1"`, is enough for a memory; `"0"` stores an item only if ' +
      'there is none. `*`, or no such header, allows any version.',
    schema: z.string(),
    example: '"1-01a1fe30-e25b-7576-a0c2-3c4e3646bd72"',
  },
  prefer: {
    description:
      'With `wait=S` the reply comes when the work is finished, or after S seconds; more than 60 count as 60. ' +
      '`?wait` has priority.',
    schema: z.string(),
    example: 'wait=5',
  },
  'x-request-id': {
    description: 'Your own id for the request; the reply repeats it and the log holds it.',
    schema: z.string().regex(/^[\w.:-]{1,128}$/),
    example: 'import-17',
  },
  traceparent: {
    description: "W3C trace context: the request becomes part of its caller's trace if tracing is on.",
    schema: z.string(),
    example: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  },
} as const satisfies Record<string, Header>;
export type RequestHeader = keyof typeof REQUEST_HEADERS;

/** Headers that replies can have, in addition to those of every HTTP reply. */
export const REPLY_HEADERS = {
  'x-request-id': {
    description: 'Id of the request: your own if you sent one, else a new one.',
    schema: z.string(),
    example: '8f11fde4-6a5d-4a47-b67e-466a1fcaff60',
  },
  location: {
    description: 'Path of the job or the document; of a redirect, the address to go to.',
    schema: z.string(),
    example: '/jobs/01a1fe39-06ea-73ec-9224-78cb00b74994',
  },
  etag: {
    description: "The memory's version, a hyphen, and its id, to be sent as `If-Match`.",
    schema: z.string(),
    example: '"1-01a1fe30-e25b-7576-a0c2-3c4e3646bd72"',
  },
  'idempotent-replayed': {
    description: '`true` if the idempotency key was known and this reply repeats the first one.',
    schema: z.literal('true'),
    example: 'true',
  },
  'preference-applied': {
    description: 'The `wait` of `Prefer` that holds, in seconds, if the request has one.',
    schema: z.string(),
    example: 'wait=5',
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
