/**
 * The part of `/mcp` that works before the MCP server is loaded: it reads bodies, answers errors in the form that the
 * protocol requires, and tells clients where to get OAuth tokens.
 */
import type { IncomingMessage } from 'node:http';
import type { NextFunction, Request, Response } from 'express';
import {
  boundTenant,
  type Config,
  type ErrorCode,
  isEngineError,
  nextTurn,
  requireOwnUser,
} from '../../engine/index.ts';
import { detailOf } from '../http-errors.ts';
import { publicUrl } from '../public-url.ts';
import { readJson } from '../read-body.ts';
import { localsOf, sendJson } from '../reply.ts';
import { requireClient } from '../await-drain.ts';
import type { TenantCall } from '../route.ts';
import { HTTP_STATUS } from '../schemas/problem.ts';
import type { Extra } from './extras.ts';
import { BODY_BOUNDS, requireBounded } from './message-bounds.ts';

/** Matches the paths of MCP: `/mcp`, and `/mcp/users/…` for one user. */
const MCP_PATH = /^\/mcp(?:\/users\/[^/]+)?$/;
/**
 * First part of the path of an OAuth metadata document (RFC 9728). The path of the described endpoint, such as `/mcp`,
 * is appended to it.
 */
const METADATA_PATH = '/.well-known/oauth-protected-resource';

/**
 * Error code of JSON-RPC 2.0 for a body that is refused as `invalid`, such as one that is not JSON. `INVALID_REQUEST`
 * is the code for a body that is too large or of another media type.
 */
const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;

/**
 * Answers a message of the Model Context Protocol, which is the body of a request. A body that is not JSON, too large
 * or of another media type is answered with an error of JSON-RPC. The MCP server is loaded at the first message, as it
 * takes 34 MB.
 * @param wanted extra tools that the request's address asks for, besides those of OM_MCP_FORGET and OM_MCP_SEARCH_FETCH
 * @param userId user to whom the address `/mcp/users/:user_id` restricts the call; undefined for everything that the
 *   key may reach
 * @throws EngineError `forbidden` if the key is bound to another user; `unavailable` if the body finds no memory, or
 *   the client left
 */
export async function answerMcp(call: TenantCall, wanted: readonly Extra[], userId?: string): Promise<void> {
  const own = userId === undefined ? call : callOfUser(call, userId);
  const { OM_MCP_FORGET, OM_MCP_SEARCH_FETCH } = call.api.engine.config;
  const extras = new Set<Extra>(wanted);
  if (OM_MCP_FORGET) extras.add('forget');
  if (OM_MCP_SEARCH_FETCH) extras.add('search_fetch');
  const body = await readMessage(call);
  if (body === undefined) return;
  const { serveMessage } = await import('./server.ts');
  // The SDK makes a server for each message: milliseconds that cannot be divided.
  await nextTurn();
  requireClient(call.response);
  await serveMessage({ call: own, extras }, body);
}

/**
 * Returns the same call, restricted to one user.
 * @throws EngineError `forbidden` if the key is bound to another user
 */
function callOfUser(call: TenantCall, userId: string): TenantCall {
  requireOwnUser(call.principal, userId);
  return {
    ...call,
    principal: { ...call.principal, userId },
    tenant: boundTenant(call.tenant, { userId }),
  };
}

/**
 * Reads a message as JSON. If the body is not JSON, too large or of another media type, answers with an error of
 * JSON-RPC and returns undefined; other errors are thrown.
 */
async function readMessage({ request, response }: TenantCall): Promise<unknown> {
  try {
    const { value } = await readJson(request, { most: BODY_BOUNDS });
    requireBounded(value);
    return value;
  } catch (error) {
    if (!isEngineError(error) || !OF_BODIES.has(error.code)) throw error;
    const code = error.code === 'invalid' ? PARSE_ERROR : INVALID_REQUEST;
    sendJson(response, HTTP_STATUS[error.code], {
      jsonrpc: '2.0',
      id: null,
      error: { code, message: detailOf(error) },
    });
    return undefined;
  }
}

const OF_BODIES: ReadonlySet<ErrorCode> = new Set(['invalid', 'too_large', 'unsupported']);

/**
 * Makes the middleware that tells a caller without a key on a path of MCP where tokens come from (RFC 9728). Without
 * `OM_OIDC_ISSUER` it does nothing.
 */
export function challengeForMcp(config: Config) {
  return (request: Request, response: Response, next: NextFunction): void => {
    if (config.OM_OIDC_ISSUER !== undefined && MCP_PATH.test(request.path)) {
      const url = `${publicUrl(request, config)}${METADATA_PATH}${request.path}`;
      localsOf(response).challenge = `Bearer realm="cairn", resource_metadata="${url}"`;
    }
    next();
  };
}

/**
 * Returns the metadata of an MCP endpoint by RFC 9728. Call it only if `OM_OIDC_ISSUER` is set.
 * @param path path of the endpoint
 */
export function resourceMetadata(request: IncomingMessage, config: Config, path: string) {
  return {
    resource: publicUrl(request, config) + path,
    authorization_servers: [config.OM_OIDC_ISSUER!],
    bearer_methods_supported: ['header'] as const,
    resource_name: 'Cairn',
  };
}

/**
 * Middleware that answers 405 on the paths of MCP to every method but POST. Revisions of MCP before 2026-07-28 used
 * other methods for sessions, which this server does not have.
 */
export function refuseOtherMethods({ path, method }: Request, response: Response, next: NextFunction): void {
  if (!MCP_PATH.test(path) || method === 'POST') return next();
  response.writeHead(405, { allow: 'POST' }).end();
}
