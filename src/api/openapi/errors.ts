import { STATUS_CODES } from 'node:http';
import type { ErrorCode } from '../../engine/index.ts';
import type { Route } from '../route.ts';
import { HTTP_STATUS, type Problem } from '../schemas/problem.ts';

/** For each error, its meaning unless a route describes it itself, and an example of its `detail`. */
export const COMMON_ERRORS = {
  invalid: {
    description: 'A field, parameter or header is wrong, the body is malformed JSON, or it did not arrive within 25 s.',
    detail: 'content: expected a string',
  },
  unauthenticated: {
    description: 'No key or more than one was sent, or the key or token is unknown, has expired or was revoked.',
    detail: 'send a key as `Authorization: Bearer <key>` or `x-api-key: <key>`',
  },
  forbidden: {
    description:
      "The key's role does not suffice, the key is bound to a user or tags and the request is about more than them, " +
      'the key has no access to the tenant of `x-cairn-tenant`, a claim of the token gives no access, or no key is ' +
      'configured and the request comes from another machine or from a web page of another origin.',
    detail: 'this needs a key with the role write; yours has read',
  },
  not_found: { description: 'Nothing has this id or name.', detail: 'no memory with this id' },
  conflict: {
    description: 'The state of the object does not allow the request.',
    detail: 'a job that is done cannot be retried',
  },
  too_large: {
    description: 'The body is over its limit.',
    detail: 'the body is over 1048576 bytes; send less at once',
  },
  unsupported: {
    description: 'The media type, charset or content encoding of the body is not one that the route accepts.',
    detail: 'expected a body of type application/json, found text/plain',
  },
  unprocessable: {
    description: 'The `Idempotency-Key` came with another body before.',
    detail: 'this Idempotency-Key came with another body before',
  },
  rate_limited: {
    description:
      'A rate limit of the key is reached, or too many wrong keys came from the address; `Retry-After` says how ' +
      'many seconds to wait.',
    detail: 'this key may spend 600 queries a minute; this request needs 1',
  },
  internal: {
    description: 'A bug, or a damaged file. Only the log holds the reason, under the id of the request.',
    detail: 'something went wrong here; the log has more under this request id',
  },
  unavailable: {
    description:
      'The backlog, the uploads folder or the memory for bodies is full, the file is locked, the server stops, or ' +
      'the identity provider whose token was sent does not answer.',
    detail: 'the backlog is full',
  },
  storage_full: {
    description: 'The disk is full, or a quota of the tenant is used up; deletes still work.',
    detail: 'the disk that holds the uploads is full',
  },
} as const satisfies Record<ErrorCode, { readonly description: string; readonly detail: string }>;

/**
 * Returns the errors that any route with this access, method and body can answer with, in addition to the errors that
 * the route declares.
 */
function impliedErrors({ access, method, body }: Route): readonly ErrorCode[] {
  const isWriting = method !== 'get' && (access === 'add' || access === 'write' || access === 'admin');
  return [
    'invalid',
    ...(access === 'anyone' ? [] : (['unauthenticated'] as const)),
    'forbidden',
    ...(body === undefined ? [] : (['too_large', 'unsupported'] as const)),
    'internal',
    ...(access === 'anyone' ? [] : (['rate_limited', 'unavailable'] as const)),
    ...(isWriting ? (['storage_full'] as const) : []),
  ];
}

/**
 * Returns every error that a route may answer with, by rising status, with the route's own description of it; undefined
 * for an error that only `COMMON_ERRORS` describes.
 */
export function errorsOf(route: Route): ReadonlyMap<ErrorCode, string | undefined> {
  const own = route.errors ?? {};
  const codes = new Set([...impliedErrors(route), ...(Object.keys(own) as ErrorCode[])]);
  const byStatus = [...codes].sort((a, b) => HTTP_STATUS[a] - HTTP_STATUS[b]);
  return new Map(byStatus.map((code) => [code, own[code]]));
}

/** Makes an example of the body of a reply with this error. */
export function exampleProblem(code: ErrorCode): Problem {
  const status = HTTP_STATUS[code];
  const { detail } = COMMON_ERRORS[code];
  return {
    type: 'about:blank',
    title: STATUS_CODES[status] ?? 'Error',
    status,
    detail,
    code,
    ...(code === 'invalid' ? { errors: [detail] } : {}),
    request_id: '8f11fde4-6a5d-4a47-b67e-466a1fcaff60',
  };
}
