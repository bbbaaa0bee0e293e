/**
 * Schemas of the fields that every message of the Model Context Protocol has. All other fields have schemas in the
 * protocol's SDK.
 */
import { z } from 'zod';
import { EXTRAS } from '../mcp/extras.ts';
import { anyObject, anyValue, expected } from './values.ts';

const rpcId = z
  .union([z.string(), z.number(), z.null()])
  .describe('Id of the request that is answered; null if it could not be read.');

/**
 * Schema of a message for the API description. Request bodies are not parsed with it, since the protocol has errors of
 * its own.
 */
export const rpcMessage = z.looseObject({
  jsonrpc: z.literal('2.0').describe('Version of JSON-RPC.'),
  id: rpcId.optional().describe('Id of the request; left out in notifications, which get no reply.'),
  method: z.string().describe('Method, such as `tools/call`.'),
  params: anyObject.optional().describe('Parameters of the method.'),
});

/** Schema of all replies to `POST /mcp` and `POST /mcp/users/:user_id`: 200, 400, 404, 406, 413, 415 and 500. */
export const rpcReply = z.union([
  z.strictObject({ jsonrpc: z.literal('2.0'), id: rpcId, result: anyObject.describe('Result of the method.') }),
  z.strictObject({
    jsonrpc: z.literal('2.0'),
    id: rpcId.optional(),
    error: z
      .strictObject({ code: z.int(), message: z.string(), data: anyValue.optional() })
      .describe('Why there is no result.'),
  }),
]);

/** Schema of the query string of `POST /mcp` and `POST /mcp/users/:user_id`. */
export const mcpQuery = z.strictObject({
  tools: z
    .string(expected('one value'))
    .transform((names) => names.split(','))
    .pipe(z.array(z.enum(EXTRAS, expected(`some of ${EXTRAS.join(', ')}, separated by commas`))))
    .default([])
    .meta({
      description:
        'Further tools for this client, separated by commas: `forget`, which erases a memory; `search_fetch` for ' +
        'the tools `search` and `fetch`, which ChatGPT asks for; `feedback` for the tool `rate_recall`.',
      examples: ['forget'],
    }),
});

/**
 * Schema of the reply 200 to `GET /.well-known/oauth-protected-resource`,
 * `GET /.well-known/oauth-protected-resource/mcp` and `GET /.well-known/oauth-protected-resource/mcp/users/:user_id`.
 */
export const resourceMetadataReply = z.strictObject({
  resource: z.string().describe('Address of the endpoint.'),
  authorization_servers: z.array(z.string()).describe('The issuer whose tokens are accepted (`OM_OIDC_ISSUER`).'),
  bearer_methods_supported: z.array(z.literal('header')).describe('Where a token is sent.'),
  resource_name: z.string().describe('Name for people.'),
});
