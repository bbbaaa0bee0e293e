/** Limits how much time and memory the MCP messages of one HTTP request take. A batch may have a hundred messages. */
import type { McpServer } from '@modelcontextprotocol/server';
import { nextTurn } from '../../engine/index.ts';
import type { Response } from 'express';
import { takeReplyPlace } from '../reply-places.ts';
import { awaitDrain, requireClient } from '../await-drain.ts';
import type { TenantCall } from '../route.ts';

/** Greatest number of messages of one request that are handled at the same time. */
const AT_ONCE = 4;
/**
 * Length from which an answer counts as long, in UTF-16 code units. For a request whose answers are all short, no
 * memory is reserved.
 */
const LONG_CHARACTERS = 16 * 1024;
/**
 * Memory that is reserved for a reply with long answers, in bytes: for the texts that are being made and for their
 * JSON.
 */
const HELD_BYTES = 4 * 1024 * 1024;

/**
 * State that the messages of one request share: `working` is the number of messages that are being handled, 4 at most.
 */
interface Line {
  working: number;
  /** Functions that let waiting messages continue, in the order in which the messages came. */
  readonly waiting: (() => void)[];
  /** Settles once memory is reserved for the reply; undefined as long as all its answers are short. */
  place: Promise<void> | undefined;
}

const lines = new WeakMap<Response, Line>();

function lineOf(response: Response): Line {
  let line = lines.get(response);
  if (line === undefined) lines.set(response, (line = { working: 0, waiting: [], place: undefined }));
  return line;
}

/**
 * Handles one MCP message of a request by calling `work`. Before that it waits until fewer than four other messages of
 * the request are being handled, and until the client has read what was sent before. Other requests run between two
 * messages.
 * @param work makes the text of the answer
 * @returns the text that `work` makes
 * @throws EngineError `unavailable` if the connection is closed or the client reads nothing, or if clients of its key
 *   do not read earlier large replies; also what `work` throws
 */
export async function inTurn(call: TenantCall, work: () => Promise<string>): Promise<string> {
  const { api, response } = call;
  const line = lineOf(response);
  if (line.working >= AT_ONCE) await new Promise<void>((resolve) => line.waiting.push(resolve));
  else line.working += 1;
  try {
    // The connection was closed if the key was revoked: then nothing more is done for it.
    requireClient(response);
    if (response.writableNeedDrain) await awaitDrain(response, api.engine.config.OM_READER_TIMEOUT_MS);
    const text = await work();
    if (text.length < LONG_CHARACTERS) return text;
    await (line.place ??= takeReplyPlace(call, HELD_BYTES));
    // What is made of a long text takes milliseconds.
    await nextTurn();
    return text;
  } finally {
    void nextTurn().then(() => {
      const next = line.waiting.shift();
      if (next === undefined) line.working -= 1;
      else next();
    });
  }
}

/**
 * Makes a server answer the messages of a batch beyond the first four one after the other, each in a turn of the event
 * loop of its own. The SDK begins all of them at once, and what is no call of a tool, such as a list of tools, takes
 * milliseconds. The first ones are begun before the reply, whose headers tell what they took of the rate limits. Each
 * further one waits until the client has read what was sent before, since the SDK keeps whatever is not read. Messages
 * that are left when the connection is closed are dropped, and so are cancellations: the SDK sends no answer for a
 * request that was cancelled, and the reply ends only with the answers of all requests. A client cancels by closing the
 * connection.
 */
export function answerInTurns(
  server: Pick<McpServer, 'connect'>,
  { api, response }: Pick<TenantCall, 'api' | 'response'>,
): void {
  const connect = server.connect.bind(server);
  server.connect = async (transport) => {
    await connect(transport);
    const { onmessage: answer } = transport;
    let last: Promise<unknown> = Promise.resolve();
    let begun = 0;
    transport.onmessage = (...message) => {
      if (isCancellation(message[0])) return;
      begun += 1;
      if (begun <= AT_ONCE) {
        answer?.(...message);
        return;
      }
      const handOver = async () => {
        if (!response.destroyed) await nextTurn();
        if (response.writableNeedDrain) await awaitDrain(response, api.engine.config.OM_READER_TIMEOUT_MS);
        if (!response.destroyed) answer?.(...message);
      };
      last = last.then(handOver).catch((error: unknown) => transport.onerror?.(error as Error));
    };
  };
}

/** Tells whether a message is the notification that cancels a request. What has an id is a request, and is answered. */
function isCancellation(message: object): boolean {
  return !('id' in message) && 'method' in message && message.method === 'notifications/cancelled';
}
