/** Shares the time and the memory of one request among its messages. A batch may have a hundred of them. */
import { nextTurn } from '../../engine/index.ts';
import type { Response } from 'express';
import { replyPlaces } from '../reply-places.ts';
import { roomIn } from '../room-in.ts';
import type { TenantCall } from '../route.ts';

/** Greatest number of messages of one request that are handled at the same time. */
const AT_ONCE = 4;
/**
 * Length from which on an answer counts as long, in UTF-16 code units. A request whose answers are all short takes
 * little memory.
 */
const LONG_CHARACTERS = 16 * 1024;
/** Memory reserved for a reply with long answers, in bytes: for those being made, as text and as JSON. */
const HELD_BYTES = 4 * 1024 * 1024;

/** State that the messages of one request share: how many are being handled, and those that wait. */
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
 * Handles one message of a request: when fewer than four others of the request are being handled, and its client has
 * read what was sent before. Other requests get a turn between two messages.
 * @param work makes the text of the answer
 * @throws EngineError `unavailable` if the client leaves or reads nothing, or if large replies to its key are not read;
 *   also what `work` throws
 */
export async function inTurn(call: TenantCall, work: () => Promise<string>): Promise<string> {
  const { api, response } = call;
  const line = lineOf(response);
  if (line.working >= AT_ONCE) await new Promise<void>((resolve) => line.waiting.push(resolve));
  else line.working += 1;
  try {
    if (response.writableNeedDrain) await roomIn(response, api.engine.config.OM_READER_TIMEOUT_MS);
    const text = await work();
    if (text.length < LONG_CHARACTERS) return text;
    await (line.place ??= takePlace(call));
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

/** Reserves memory for this reply among the large ones, until it ends. */
async function takePlace({ principal, response }: TenantCall): Promise<void> {
  const leave = await replyPlaces.enter(`${principal.tenantId} ${principal.keyId}`, HELD_BYTES);
  response.once('close', leave);
  if (response.destroyed) leave();
}
