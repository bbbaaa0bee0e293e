import { takeTurn } from '../engine/index.ts';
import { hasLongText, jsonPieces } from './json-pieces.ts';
import { replyPlaces } from './reply-places.ts';
import { awaitDrain, requireClient } from './await-drain.ts';
import type { TenantCall } from './route.ts';

/** Size of a reply at which a list in it ends early, in bytes of JSON. The first item of a list is always sent. */
export const MAX_REPLY_BYTES = 8 * 1024 * 1024;
/**
 * Number of characters of JSON that are gathered before they are written. A shorter reply is sent in one piece, which
 * Node does fastest.
 */
const PIECE_CHARACTERS = 64 * 1024;
/** Greatest number of bytes that are written at once, which bounds the memory of a reply whose client reads slowly. */
const WRITE_BYTES = 64 * 1024;
/**
 * Estimated memory of a reply whose values are read from the database while it is sent, in bytes: one slice of its
 * list, one item as JSON, and the text that is not sent yet.
 */
const STREAM_BYTES = 2 * 1024 * 1024;

/** Which items of a list were sent; `sent` is their number. */
export interface SentList<Item> {
  readonly sent: number;
  /** The last item that was sent; undefined if none was. */
  readonly last: Item | undefined;
  /** True if the list had further items. */
  readonly hasMore: boolean;
  /** True if the list ended early because the reply would exceed 8 MiB. */
  readonly isCut: boolean;
}

/** How the items of a list become JSON, and how many are sent. */
export interface ListOptions<Item> {
  /** Makes the JSON value of an item. */
  readonly toJson: (item: Item) => unknown;
  /**
   * Greatest number of items that are sent; by default all are. If the caller passes one item more than this, it is not
   * sent, but `hasMore` becomes true.
   */
  readonly limit?: number;
}

/**
 * Answers 200 with JSON that is sent while it is made. It lets other requests run in between, waits for a client that
 * reads slowly, and holds about 64 Ki characters of the JSON text at a time. A shorter reply is sent in one piece at
 * its end.
 * @param make makes the reply; if it throws after the first piece was sent, the connection is closed
 * @param heldBytes memory of the reply's values in bytes, if all of them are in memory already; at least, and by
 *   default, 2 MiB. It is reserved before the first piece is sent, and a shorter reply needs none. Null if the reply
 *   needs no further memory, because `takeReplyPlace` reserved it or because the reply must not be refused
 */
export async function sendInPieces(
  call: TenantCall,
  make: (reply: JsonReply) => Promise<void>,
  heldBytes: number | null = STREAM_BYTES,
): Promise<void> {
  const reply = new JsonReply(call, heldBytes === null ? null : Math.max(heldBytes, STREAM_BYTES));
  try {
    await make(reply);
  } finally {
    reply.leave();
  }
}

/**
 * The JSON of one reply, which is sent while it is added to (see `sendInPieces`). `end` must be called last. The
 * methods that return a promise wait for a client that reads slowly. They throw EngineError `unavailable` if the client
 * left or reads nothing for OM_READER_TIMEOUT_MS, or if no memory for the reply became free in time.
 */
export class JsonReply {
  readonly #call: TenantCall;
  readonly #heldBytes: number | null;
  #pending = '';
  #bytes = 0;
  /**
   * Releases the memory that was reserved for the reply among all large replies. Does nothing while the reply is short,
   * since no memory is reserved for it.
   */
  leave = (): void => {};

  constructor(call: TenantCall, heldBytes: number | null) {
    this.#call = call;
    this.#heldBytes = heldBytes;
  }

  /** Adds a short text to the reply, without sending it yet. */
  add(text: string): void {
    this.#append(text, Buffer.byteLength(text));
  }

  /** Adds the JSON of a value. */
  async addValue(value: unknown): Promise<void> {
    if (hasLongText(value)) await this.#addPieces(await this.#makePieces(value));
    else this.add(JSON.stringify(value));
  }

  /**
   * Adds a JSON list. It ends after `limit` items, or before the item with which the reply would exceed 8 MiB; the
   * first item is always added.
   * @param slices the items in slices, which are taken one by one
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
      // Few memories may pass a filter, so that nothing is sent for long.
      requireClient(this.#call.response);
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
        await takeTurn();
      }
    }
    return end(false, false);
  }

  /** Adds a last text, sends everything that was not sent yet, and ends the reply. */
  async end(text: string): Promise<void> {
    this.add(text);
    const { response } = this.#call;
    if (response.headersSent) {
      await this.#write();
      return void response.end();
    }
    // The comment of `sendJson` says why it is sent in Latin-1.
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

  /** Makes the JSON of a value that contains a long text, and lets other requests run between two pieces. */
  async #makePieces(value: unknown): Promise<Pieces> {
    const made: Buffer[] = [];
    let bytes = 0;
    for (const text of jsonPieces(value)) {
      const piece = Buffer.from(text);
      made.push(piece);
      bytes += piece.length;
      await takeTurn();
    }
    return { made, bytes };
  }

  async #addPieces({ made, bytes }: Pieces): Promise<void> {
    await this.#write();
    for (const piece of made) await this.#send(piece);
    this.#bytes += bytes;
  }

  /**
   * Sends the text that was gathered. The first call first waits until memory is reserved for this reply among all
   * large replies, and sends the status and headers.
   */
  async #write(): Promise<void> {
    const { response, principal } = this.#call;
    if (!response.headersSent) {
      // Nobody reads it any more, so it need not wait among those that are read.
      requireClient(response);
      if (this.#heldBytes !== null) {
        this.leave = await replyPlaces.enter(principal, this.#heldBytes, { response });
      }
      this.#sendType();
    }
    const bytes = Buffer.from(this.#pending);
    this.#pending = '';
    for (let at = 0; at < bytes.length; at += WRITE_BYTES) await this.#send(bytes.subarray(at, at + WRITE_BYTES));
  }

  async #send(bytes: Buffer): Promise<void> {
    const { api, response } = this.#call;
    const hasRoom = response.write(bytes);
    if (!hasRoom) await awaitDrain(response, api.engine.config.OM_READER_TIMEOUT_MS);
  }
}

/** JSON text in pieces (`made`), and the total length of the pieces in bytes (`bytes`). */
interface Pieces {
  readonly made: readonly Buffer[];
  readonly bytes: number;
}

/**
 * Answers 200 with an object whose fields may be long lists. A list with which the reply would exceed 8 MiB ends early,
 * and the reply then says `truncated`.
 * @param heldBytes memory that the object takes, estimated; null as in `sendInPieces`
 */
export async function sendObject(call: TenantCall, object: object, heldBytes: number | null): Promise<void> {
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
    const isTold = 'truncated' in object && object.truncated === true;
    await reply.end(isCut && !isTold ? `${separator}"truncated":true}` : '}');
  };
  await sendInPieces(call, make, heldBytes);
}
