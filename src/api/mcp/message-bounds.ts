/**
 * Bounds of MCP messages. The SDK checks each part of a message with schemas at once, some 5 µs for each value, and
 * looks at every message of a batch before it counts them. What is too large is refused before that.
 */
import { EngineError } from '../../engine/index.ts';
import type { JsonBounds } from '../check-json-text.ts';

/**
 * Greatest numbers of JSON values and field names in a body. The largest argument of a tool is metadata, whose 16 KiB
 * may hold some 8,000 values or 2,700 names.
 */
export const BODY_BOUNDS: JsonBounds = { values: 10_000, names: 3_000 };
/** Greatest number of messages in a batch, which is that of the SDK. */
const MAX_MESSAGES = 100;
/**
 * Greatest length of the id of a message and of its progress token, in UTF-16 code units: the server repeats them in
 * its answer and in each notification of progress.
 */
const MAX_REPEATED = 256;
/** Greatest number of JSON values in a body beside the arguments of tools. A message has about ten. */
const MAX_FRAME_VALUES = 2_000;

/**
 * Checks that a body is no larger than a client needs: at most 100 messages, 2,000 values beside the arguments of
 * tools, and 256 characters for each id and progress token.
 * @throws EngineError `too_large`
 */
export function requireBounded(body: unknown): void {
  const messages: readonly unknown[] = Array.isArray(body) ? body : [body];
  if (messages.length > MAX_MESSAGES) throw new EngineError('too_large', `a batch has over ${MAX_MESSAGES} messages`);
  messages.filter(isObject).forEach(requireShort);
  const waiting: unknown[] = messages.flatMap(partsOf);
  for (let values = 0; waiting.length > 0; values++) {
    if (values === MAX_FRAME_VALUES)
      throw new EngineError('too_large', `the body has over ${MAX_FRAME_VALUES} values beside arguments of tools`);
    const value = waiting.pop();
    if (typeof value === 'object' && value !== null) for (const part of Object.values(value)) waiting.push(part);
  }
}

/** Refuses a message whose id or progress token is too long to be repeated. */
function requireShort({ id, params }: Readonly<Record<string, unknown>>): void {
  const meta = isObject(params) ? params['_meta'] : undefined;
  const repeated = { id, progressToken: isObject(meta) ? meta['progressToken'] : undefined };
  for (const [name, value] of Object.entries(repeated)) {
    if (typeof value === 'string' && value.length > MAX_REPEATED)
      throw new EngineError('too_large', `the ${name} of a message has over ${MAX_REPEATED} characters`);
  }
}

/** Returns the values of a message, without the arguments of a tool that it calls. */
function partsOf(message: unknown): readonly unknown[] {
  if (!isObject(message)) return [message];
  const { params, ...others } = message;
  if (message['method'] !== 'tools/call' || !isObject(params)) return [params, ...Object.values(others)];
  return [{ ...params, arguments: null }, ...Object.values(others)];
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
