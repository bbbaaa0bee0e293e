import { isCairnError, type Client } from '../../client/index.ts';

export interface CairnSessionOptions {
  /** The client of the server, as `createClient` of `cairn-memory/client` makes it. */
  readonly client: Pick<Client, 'readLog' | 'appendToLog' | 'replaceEndOfLog' | 'popFromLog' | 'clearLog'>;
  /** The user who owns the session; by default it belongs to no user. */
  readonly userId?: string | undefined;
  /** Id of the conversation, which must not be empty; by default a new, random one. */
  readonly sessionId?: string | undefined;
}

/** A change of the history, as the SDK describes it. */
export type HistoryTransaction =
  | { readonly type: 'append_items'; readonly items: readonly object[] }
  | {
      readonly type: 'replace_suffix';
      readonly expectedSuffix: readonly object[];
      readonly replacement: readonly object[];
    };

/** Greatest number of items that one request appends. */
const MAX_APPENDED = 100;
const MAX_PAGE = 1_000;
/**
 * Greatest size of the items in one request, in bytes of JSON. Cairn accepts bodies of 1 MiB, which include the JSON
 * around the items.
 */
const MAX_BYTES = 1_000_000;

/**
 * A `Session` of the OpenAI Agents SDK whose items are stored in a session log of a Cairn server, unchanged and in
 * their order; an item may occur twice. It is transaction-aware (`SessionHistoryTransactionAwareSession`): each change
 * by the SDK is applied once, even if a run is resumed several times. Nothing is sent before the first call.
 * @example await run(agent, 'Hello', { session: new CairnSession({ client, userId: 'ana', sessionId: 'chat-7' }) })
 */
export class CairnSession {
  readonly #client: CairnSessionOptions['client'];
  readonly #log: { readonly id: string; readonly user_id?: string };

  constructor({ client, userId, sessionId = crypto.randomUUID() }: CairnSessionOptions) {
    if (sessionId === '') throw new TypeError('sessionId must not be empty');
    this.#client = client;
    this.#log = { id: sessionId, ...(userId === undefined ? {} : { user_id: userId }) };
  }

  async getSessionId(): Promise<string> {
    return this.#log.id;
  }

  /** Returns the newest items, oldest first: at most `limit`, and by default all. */
  async getItems<Item = unknown>(limit = Infinity): Promise<Item[]> {
    const pages: Item[][] = [];
    let [left, before] = [limit, undefined as number | undefined];
    while (left >= 1) {
      const page = await this.#client.readLog({ ...this.#log, limit: Math.min(left, MAX_PAGE), before });
      pages.unshift(page.items.map(({ item }) => item as Item));
      left -= page.items.length;
      before = page.next;
      if (before === undefined) break;
    }
    return pages.flat();
  }

  /**
   * Appends items. Up to 100 items and 1 MB are appended in one step, that is all or none; more take several steps.
   * @throws CairnError for an item that Cairn refuses, such as one of more than 256 KiB; the steps before it stay
   */
  async addItems(items: readonly object[]): Promise<void> {
    for (const some of stepsOf(items)) await this.#append(some, crypto.randomUUID());
  }

  /** Removes the newest item and returns it; undefined if the session is empty. */
  async popItem<Item = unknown>(): Promise<Item | undefined> {
    const { popped } = await this.#client.popFromLog(this.#log);
    return popped === null ? undefined : (popped.item as Item);
  }

  async clearSession(): Promise<void> {
    await this.#client.clearLog(this.#log);
  }

  /**
   * Applies a change in one step, once for each `operationId`: a repetition with the same id changes nothing.
   * @throws CairnError `conflict` if the id was used for another change, or the session does not end in the expected
   *   items; `invalid` for more than 100 items, and an error for more than 1 MiB of JSON, which cannot be sent in one
   *   step. Nothing has changed then
   * @throws TypeError if `operationId` is blank
   */
  async applyHistoryTransaction(change: {
    readonly operationId: string;
    readonly transaction: HistoryTransaction;
  }): Promise<void> {
    const { operationId, transaction } = change;
    if (operationId.trim() === '') throw new TypeError('operationId must not be empty');
    if (transaction.type === 'append_items') {
      if (transaction.items.length > 0) await this.#append(transaction.items, operationId);
      return;
    }
    const { expectedSuffix, replacement } = transaction;
    await again(() =>
      this.#client.replaceEndOfLog({
        ...this.#log,
        expected_suffix: expectedSuffix,
        items: replacement,
        operation_id: operationId,
      }),
    );
  }

  async #append(items: readonly object[], operationId: string): Promise<void> {
    await again(() => this.#client.appendToLog({ ...this.#log, items, operation_id: operationId }));
  }
}

/**
 * Calls `send`, and calls it a second time if the reply was lost. The operation id of the change makes sure that it is
 * applied only once.
 */
async function again(send: () => Promise<unknown>): Promise<void> {
  try {
    await send();
  } catch (error) {
    if (!isCairnError(error, 'unreachable')) throw error;
    await send();
  }
}

// Edge runtimes have no `Buffer`.
const encoder = new TextEncoder();

/**
 * Divides items into groups for one request each: at most 100 items and 1 MB of JSON. A larger item is a group of its
 * own.
 */
function* stepsOf(items: readonly object[]): Generator<readonly object[]> {
  let step: object[] = [];
  let bytes = 0;
  for (const item of items) {
    const size = encoder.encode(JSON.stringify(item)).length + 1;
    if (step.length > 0 && (step.length === MAX_APPENDED || bytes + size > MAX_BYTES)) {
      yield step;
      [step, bytes] = [[], 0];
    }
    step.push(item);
    bytes += size;
  }
  if (step.length > 0) yield step;
}
