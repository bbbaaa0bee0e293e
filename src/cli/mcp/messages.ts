/** Messages of the Model Context Protocol between lines of standard input and requests of HTTP. */

/** Key under which a message of the revision 2026-07-28 names its revision. */
const REVISION_KEY = 'io.modelcontextprotocol/protocolVersion';
/** Parameter that the header `Mcp-Name` repeats, by method. */
const NAMED_BY: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
};

/**
 * Makes the headers that a message needs over HTTP, where they repeat parts of its body.
 * @param negotiated revision that a handshake has settled, for clients of 2025; undefined before it
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

/** True for the message with which a client of 2025 begins. */
export function isHandshake(message: unknown): boolean {
  return fieldsOf(message)['method'] === 'initialize';
}

/** Returns the revision that the answer to a handshake settles; undefined for an error. */
export function revisionSettledBy(reply: unknown): string | undefined {
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

/** Makes an error of JSON-RPC. */
export function errorReply(id: string | number | undefined, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id: id ?? null, error: { code, message } });
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

/** Writes a value as a header may hold it: other texts than plain ASCII in base64, marked as the protocol asks. */
function headerValue(text: string): string {
  const isPlain = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text);
  return isPlain ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`;
}
