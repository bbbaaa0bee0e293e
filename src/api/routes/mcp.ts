import { z } from 'zod';
import { EngineError } from '../../engine/index.ts';
import { answerMcp, resourceMetadata } from '../mcp/endpoint.ts';
import { type Call, openRoute, route, type Route } from '../route.ts';
import { userIdSchema } from '../schemas/memories.ts';
import { mcpQuery, resourceMetadataReply, rpcMessage, rpcReply } from '../schemas/mcp.ts';
import { parse } from '../schemas/parse.ts';

const BODY = {
  json: rpcMessage,
  example: {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'recall', arguments: { query: 'when do we deploy to staging?' } },
  },
} as const;

const RESULT = {
  jsonrpc: '2.0',
  id: 1,
  result: { content: [{ type: 'text', text: 'No relevant context found.' }] },
};
const failure = (code: number, message: string) => ({ jsonrpc: '2.0', id: 1, error: { code, message } });
const STREAM = { type: 'text/event-stream', schema: z.string(), example: `data: ${JSON.stringify(RESULT)}\n\n` };

const REPLIES = {
  200: {
    description: 'The result, or an error of the method; for clients of earlier revisions as an event stream.',
    json: rpcReply,
    example: RESULT,
    media: [STREAM],
  },
  202: { description: 'The message was a notification, which has no reply.' },
  400: {
    description: 'The message is malformed, or names a revision of the protocol that is not served.',
    json: rpcReply,
    example: { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'the body is malformed JSON' } },
  },
  404: {
    description: 'There is no such method.',
    json: rpcReply,
    example: failure(-32601, 'Method not found'),
  },
  406: {
    description: 'The client accepts neither JSON nor event streams.',
    json: rpcReply,
    example: failure(-32000, 'Not Acceptable: Client must accept both application/json and text/event-stream'),
  },
  413: {
    description: 'The message is over 1 MiB.',
    json: rpcReply,
    example: failure(-32600, 'the body is over 1048576 bytes; send less at once'),
  },
  415: {
    description: 'The body is of another type than `application/json`.',
    json: rpcReply,
    example: failure(-32600, 'expected a body of type application/json, found text/plain'),
  },
  500: {
    description: 'A bug; only the log holds the reason.',
    json: rpcReply,
    example: failure(-32603, 'Internal server error'),
  },
} as const;

const ABOUT =
  'One endpoint for clients of the revision 2026-07-28 of the protocol, which has no sessions, and of the revisions ' +
  'of 2025. Tools, resources and prompts are listed by the protocol itself, for the role of the key: a reader gets ' +
  'no tool that writes, and a key that only adds gets `remember` and `ingest` alone. Each tool spends what its route ' +
  'would spend of the rate limits. See docs/guides/mcp.md.';

/** Routes of the Model Context Protocol. */
export const mcpRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/mcp',
    name: 'callMcp',
    access: 'read or add',
    forBoundKeys: true,
    recordsItsReads: true,
    summary: 'Takes a message of the Model Context Protocol',
    description: ABOUT,
    query: mcpQuery,
    body: BODY,
    replies: REPLIES,
    handle: (call) => answerMcp(call, call.query.tools),
  }),
  route({
    method: 'post',
    path: '/mcp/users/:user_id',
    name: 'callMcpOfUser',
    access: 'read or add',
    forBoundKeys: true,
    recordsItsReads: true,
    summary: 'Takes a message of the Model Context Protocol in the name of one user',
    description: 'The same as `POST /mcp`, but only memories of this user are reached, whatever the key may reach.',
    params: { user_id: { description: 'The user.', example: 'ana' } },
    query: mcpQuery,
    body: BODY,
    replies: REPLIES,
    handle: (call) => answerMcp(call, call.query.tools, parse(userIdSchema, call.params.user_id)),
  }),
  ...metadataRoutes(),
];

function metadataRoutes(): Route[] {
  const replies = {
    200: {
      description: 'The metadata.',
      json: resourceMetadataReply,
      example: {
        resource: 'https://memory.example.com/mcp',
        authorization_servers: ['https://login.example.com'],
        bearer_methods_supported: ['header' as const],
        resource_name: 'Cairn',
      },
    },
  };
  const common = {
    method: 'get' as const,
    replies,
    errors: { not_found: 'The server accepts no tokens of an identity provider: `OM_OIDC_ISSUER` is not set.' },
  };
  const metadata = ({ api, request }: Call, path: string) => {
    const { config } = api.engine;
    if (config.OM_OIDC_ISSUER === undefined) throw new EngineError('not_found', 'no such path');
    return resourceMetadata(request, config, path);
  };
  return [
    openRoute({
      ...common,
      path: '/.well-known/oauth-protected-resource',
      name: 'getResource',
      summary: 'Says where a client of MCP gets a token (RFC 9728)',
      handle: (call) => call.send(200, metadata(call, '/mcp')),
    }),
    openRoute({
      ...common,
      path: '/.well-known/oauth-protected-resource/mcp',
      name: 'getMcpResource',
      summary: 'Says where a client of `/mcp` gets a token (RFC 9728)',
      handle: (call) => call.send(200, metadata(call, '/mcp')),
    }),
    openRoute({
      ...common,
      path: '/.well-known/oauth-protected-resource/mcp/users/:user_id',
      name: 'getMcpResourceOfUser',
      summary: 'Says where a client of `/mcp/users/:user_id` gets a token (RFC 9728)',
      params: { user_id: { description: 'The user.', example: 'ana' } },
      handle: (call) => call.send(200, metadata(call, `/mcp/users/${encodeURIComponent(call.params.user_id)}`)),
    }),
  ];
}
