/** Reads and makes messages of the Model Context Protocol, for passing them between standard input and HTTP. */

/** Key in the `_meta` object of a message in which clients of the revision 2026-07-28 name their protocol revision. */
const REVISION_KEY = 'io.modelcontextprotocol/protocolVersion';
/** For each method, the name of the parameter whose value the HTTP header `Mcp-Name` repeats. */
const NAMED_BY: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
};

/**
 * Makes the headers that a message needs over HTTP, which repeat parts of its body. They are empty for a client of 2025
 * before its handshake.
 * @param negotiated revision on which a handshake has agreed, for clients of 2025; undefined before it
 */
export function headersOf(message: unknown, negotiated: string | undefined): Record<string, string> {
  const { method, params } = fieldsOf(message);
  const revision = fieldsOf(fieldsOf(params)['_meta'])[REVISION_KEY];
  if (typeof revision !== 'string') return negotiated === undefined ? {} : { 'mcp-protocol-version': negotiated };
  const named = typeof method === 'string' ? fieldsOf(params)[NAMED_BY[method] ?? ''] : undefined;
  return {
    'mcp-protocol-version': headerValue(revision),
    ...(typeof method === 'string' ? { 'mcp-method': headerValue(method) } : {}),
    ...(typeof named === 'string' ? { 'mcp-name': headerValue(named) } : {}),
  };
}

/** Tells whether a message is `initialize`, with which a client of 2025 begins. */
export function isHandshake(message: unknown): boolean {
  return fieldsOf(message)['method'] === 'initialize';
}

/** Returns the protocol revision on which the server's answer to `initialize` agrees; undefined for an error. */
export function agreedRevision(reply: unknown): string | undefined {
  const revision = fieldsOf(fieldsOf(reply)['result'])['protocolVersion'];
  return typeof revision === 'string' ? revision : undefined;
}

/** Returns the id of the request that a notification cancels; undefined for any other message. */
export function cancelledBy(message: unknown): unknown {
  const { method, params } = fieldsOf(message);
  return method === 'notifications/cancelled' ? fieldsOf(params)['requestId'] : undefined;
}

/** Returns the id of a request; undefined for a notification, a reply and a batch. */
export function requestId(message: unknown): string | number | undefined {
  const { id, method } = fieldsOf(message);
  return method !== undefined && (typeof id === 'string' || typeof id === 'number') ? id : undefined;
}

/**
 * Makes an error of JSON-RPC as a line of JSON.
 * @param id id of the request; undefined if it is not known, which becomes null
 */
export function errorReply(id: string | number | undefined, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id: id ?? null, error: { code, message } });
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

/**
 * Returns a value as a header may contain it: plain ASCII as it is, any other text in base64, marked as the protocol
 * requires.
 */
function headerValue(text: string): string {
  const isPlain = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text);
  return isPlain ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`;
}
