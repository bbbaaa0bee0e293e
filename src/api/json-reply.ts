import { hasLongText, jsonPieces } from './json-pieces.ts';
import { replyPlaces } from './reply-places.ts';
import { roomIn } from './room-in.ts';
import type { TenantCall } from './route.ts';
import { nextTurn } from './turns.ts';

/** Bytes of JSON after which a list in a reply ends early; its first item is always sent. */
export const MAX_REPLY_BYTES = 8 * 1024 * 1024;
/**
 * Characters of JSON that are gathered before they are written. A reply that is no longer is sent in one piece, as Node
 * sends such a reply fastest.
 */
const PIECE_CHARACTERS = 64 * 1024;
/** Bytes that are written at once, so that a client that reads slowly has only that much beside the next item. */
const WRITE_BYTES = 64 * 1024;
/** Longest time for which one reply holds the event loop (ms), but for an item without long texts. */
const TURN_MS = 2;
/** Memory that a reply of unknown length holds: a slice of its list, an item as JSON, and what is on its way. */
const STREAM_BYTES = 2 * 1024 * 1024;

/** How much of a list a reply holds. */
export interface SentList<Item> {
  readonly sent: number;
  /** Last item that was sent; undefined if there was none. */
  readonly last: Item | undefined;
  /** Whether there are items that were not sent. */
  readonly hasMore: boolean;
  /** Whether the list ended early because the reply had `MAX_REPLY_BYTES`. */
  readonly isCut: boolean;
}

/** How the items of a list become JSON, and how many of them are sent. */
export interface ListOptions<Item> {
  /** Makes the JSON value of an item. */
  readonly toJson: (item: Item) => unknown;
  /** Most items that are sent. Of the items given, one more says that there are more. */
  readonly limit?: number;
}

/**
 * Answers 200 with JSON that is written while it is made. The reply takes turns with other requests, waits for a client
 * that reads slowly, and holds no more than a piece of its text. A short one is sent in one piece at its end.
 * @param make makes the reply; after the first piece was sent, the connection breaks off if it throws
 * @param heldBytes memory that the reply's values take, if they are all there already
 */
export async function sendInPieces(
  call: TenantCall,
  make: (reply: JsonReply) => Promise<void>,
  heldBytes = STREAM_BYTES,
): Promise<void> {
  const reply = new JsonReply(call, Math.max(heldBytes, STREAM_BYTES));
  try {
    await make(reply);
  } finally {
    reply.leave();
  }
}

/**
 * The JSON of one reply, which is sent while it is added piece by piece (see `sendInPieces`). `end` must come last.
 * It waits for a client that reads slowly; a client that left, or reads nothing for OM_READER_TIMEOUT_MS, makes the
 * adding methods throw EngineError `unavailable`.
 */
export class JsonReply {
  readonly #call: TenantCall;
  readonly #heldBytes: number;
  #pending = '';
  #bytes = 0;
  #turnEndsAt = performance.now() + TURN_MS;
  /** Gives back the memory that the reply took; does nothing as long as it is short. */
  leave = (): void => {};

  constructor(call: TenantCall, heldBytes: number) {
    this.#call = call;
    this.#heldBytes = heldBytes;
  }

  /** Adds a short text to the reply. */
  add(text: string): void {
    this.#append(text, Buffer.byteLength(text));
  }

  /** Adds the JSON of a value. */
  async addValue(value: unknown): Promise<void> {
    if (hasLongText(value)) await this.#addPieces(await this.#makePieces(value));
    else this.add(JSON.stringify(value));
  }

  /**
   * Adds a JSON list. It ends with `limit`, or before the reply would exceed `MAX_REPLY_BYTES`.
   * @param slices the items, in slices that are asked for one by one
   * @throws EngineError `unavailable` if the client left; also what the iteration throws
   */
  async addList<Item>(
    slices: AsyncIterable<readonly Item[]> | Iterable<readonly Item[]>,
    { toJson, limit = Infinity }: ListOptions<Item>,
  ): Promise<SentList<Item>> {
    let sent = 0;
    let last: Item | undefined;
    const end = (isCut: boolean, hasMore: boolean) => {
      this.add(']');
      return { sent, last, hasMore, isCut };
    };
    this.add('[');
    for await (const slice of slices) {
      for (const item of slice) {
        if (sent === limit) return end(false, true);
        const value = toJson(item);
        const pieces = hasLongText(value) ? await this.#makePieces(value) : undefined;
        const text = pieces === undefined ? JSON.stringify(value) : '';
        const bytes = pieces?.bytes ?? Buffer.byteLength(text);
        if (sent > 0 && this.#bytes + bytes > MAX_REPLY_BYTES) return end(true, true);
        if (sent > 0) this.add(',');
        if (pieces === undefined) this.#append(text, bytes);
        else await this.#addPieces(pieces);
        last = item;
        sent += 1;
        if (this.#pending.length > PIECE_CHARACTERS) await this.#write();
        await this.#takeTurns();
      }
    }
    return end(false, false);
  }

  /** Adds a last text, and sends what was not sent yet. */
  async end(text: string): Promise<void> {
    this.add(text);
    const { response } = this.#call;
    if (response.headersSent) {
      await this.#write();
      return void response.end();
    }
    // The same as `sendJson`, of which see the comment.
    this.#sendType();
    response.setHeader('content-length', this.#bytes);
    response.end(this.#pending, this.#bytes === this.#pending.length ? 'latin1' : 'utf8');
  }

  #sendType(): void {
    this.#call.response.statusCode = 200;
    this.#call.response.setHeader('content-type', 'application/json; charset=utf-8');
  }

  #append(text: string, bytes: number): void {
    this.#pending += text;
    this.#bytes += bytes;
  }

  /** Makes the JSON of a value that has a long text, in turns with other requests. */
  async #makePieces(value: unknown): Promise<Pieces> {
    const made: Buffer[] = [];
    let bytes = 0;
    for (const text of jsonPieces(value)) {
      const piece = Buffer.from(text);
      made.push(piece);
      bytes += piece.length;
      await this.#takeTurns();
    }
    return { made, bytes };
  }

  async #addPieces({ made, bytes }: Pieces): Promise<void> {
    await this.#write();
    for (const piece of made) await this.#send(piece);
    this.#bytes += bytes;
  }

  /** Writes what was gathered. */
  async #write(): Promise<void> {
    const { response, principal } = this.#call;
    if (!response.headersSent) {
      this.leave = await replyPlaces.enter(`${principal.tenantId} ${principal.keyId}`, this.#heldBytes);
      this.#sendType();
    }
    const bytes = Buffer.from(this.#pending);
    this.#pending = '';
    for (let at = 0; at < bytes.length; at += WRITE_BYTES) await this.#send(bytes.subarray(at, at + WRITE_BYTES));
  }

  async #send(bytes: Buffer): Promise<void> {
    const { api, response } = this.#call;
    const hasRoom = response.write(bytes);
    if (!hasRoom) await roomIn(response, api.engine.config.OM_READER_TIMEOUT_MS);
  }

  /** Lets other requests in if this one has had its turn. */
  async #takeTurns(): Promise<void> {
    if (performance.now() < this.#turnEndsAt) return;
    await nextTurn();
    this.#turnEndsAt = performance.now() + TURN_MS;
  }
}

/** JSON that was made in pieces. */
interface Pieces {
  readonly made: readonly Buffer[];
  readonly bytes: number;
}

/**
 * Answers 200 with an object whose lists may be long. Of each list that does not fit, the last items are left out, and
 * the reply says `truncated`.
 * @param heldBytes memory that the object takes, estimated
 */
export async function sendObject(call: TenantCall, object: object, heldBytes: number): Promise<void> {
  const make = async (reply: JsonReply) => {
    let isCut = false;
    let separator = '{';
    for (const [name, value] of Object.entries(object) as [string, unknown][]) {
      if (value === undefined) continue;
      reply.add(`${separator}${JSON.stringify(name)}:`);
      separator = ',';
      if (!Array.isArray(value)) await reply.addValue(value);
      else isCut = (await reply.addList([value as unknown[]], { toJson: (item) => item })).isCut || isCut;
    }
    await reply.end(isCut ? `${separator}"truncated":true}` : '}');
  };
  await sendInPieces(call, make, heldBytes);
}
