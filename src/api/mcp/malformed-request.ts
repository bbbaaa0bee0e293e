import type { IncomingMessage } from 'node:http';
import { isJSONRPCRequest, ProtocolErrorCode, type SpecTypeName, specTypeSchemas } from '@modelcontextprotocol/server';
import type { z } from 'zod';
import type { rpcReply } from '../schemas/mcp.ts';

/** The methods that this server answers, each with the name of its schema in the SDK. */
const REQUESTS: Readonly<Record<string, SpecTypeName>> = {
  initialize: 'InitializeRequest',
  ping: 'PingRequest',
  'tools/list': 'ListToolsRequest',
  'tools/call': 'CallToolRequest',
  'resources/list': 'ListResourcesRequest',
  'resources/templates/list': 'ListResourceTemplatesRequest',
  'resources/read': 'ReadResourceRequest',
  'prompts/list': 'ListPromptsRequest',
  'prompts/get': 'GetPromptRequest',
  'server/discover': 'DiscoverRequest',
  'subscriptions/listen': 'SubscriptionsListenRequest',
};
/** Greatest number of problems that an error names; further ones are left out. */
const MAX_PROBLEMS = 3;

/**
 * Makes the error that answers a request with malformed parameters, which the SDK would call an internal error.
 * @param isModern whether the request declares the revision 2026-07-28, which has no method `initialize`
 * @returns undefined for a well-formed request, and for everything that the SDK answers itself: other methods, batches,
 *   and bodies that are not JSON-RPC
 */
export function malformedRequest(body: unknown, isModern: boolean): z.input<typeof rpcReply> | undefined {
  if (!isJSONRPCRequest(body) || !Object.hasOwn(REQUESTS, body.method)) return undefined;
  if (isModern && body.method === 'initialize') return undefined;
  const checked = specTypeSchemas[REQUESTS[body.method]!]['~standard'].validate(body);
  if (checked.issues === undefined) return undefined;
  const problems = checked.issues.slice(0, MAX_PROBLEMS).map(({ path = [], message }) => {
    const field = path.map((part) => (typeof part === 'object' ? part.key : part)).join('.');
    return `${field}: ${message.replace('Invalid input: ', '')}`;
  });
  return {
    jsonrpc: '2.0',
    id: body.id,
    error: { code: ProtocolErrorCode.InvalidParams, message: `${body.method}: ${problems.join('; ')}` },
  };
}

/**
 * Makes the error that answers a request whose Host header is no host of a URL, with which the SDK would fail.
 * @returns undefined for a well-formed header, and for a request without one
 */
export function malformedHost({ headers, url }: IncomingMessage): z.input<typeof rpcReply> | undefined {
  const { host } = headers;
  if (host === undefined) return undefined;
  const parsed = URL.parse(`http://${host}${url}`);
  if (parsed !== null && parsed.username === '' && parsed.password === '') return undefined;
  return {
    jsonrpc: '2.0',
    id: null,
    error: { code: ProtocolErrorCode.InvalidRequest, message: 'the Host header and the path are no URL' },
  };
}
