import { isCairnError, type Client } from '../../client/index.ts';

export interface CairnSessionOptions {
  /** The client of the server, as `createClient` of `cairn-memory/client` makes it. */
  readonly client: Pick<Client, 'readLog' | 'appendToLog' | 'replaceEndOfLog' | 'popFromLog' | 'clearLog'>;
  /** The user who owns the session; by default no particular user. */
  readonly userId?: string | undefined;
  /** The conversation; a new one by default. */
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

/** Most items that a request appends, and that a page has. */
const MAX_APPENDED = 100;
const MAX_PAGE = 1_000;
/** Most bytes of items in one request; Cairn takes 1 MiB with everything around them. */
const MAX_BYTES = 1_000_000;

/**
 * A `Session` of the OpenAI Agents SDK whose items are kept in a session log: word for word, in their order, equal ones
 * too. It is transaction-aware (`SessionHistoryTransactionAwareSession`): the SDK's changes happen once, however often
 * a run is resumed. Nothing is sent before the first call.
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

  /** Returns the newest items, at most `limit` of them and by default all, the oldest of them first. */
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
   * Appends items. Up to 100 of them, and 1 MB, are appended in one step; more are appended in several.
   * @throws CairnError for an item that Cairn refuses, such as one of more than 256 KiB; the steps before it stay
   */
  async addItems(items: readonly object[]): Promise<void> {
    for (const some of stepsOf(items)) await this.#append(some, crypto.randomUUID());
  }

  /** Takes the newest item off and returns it; undefined if there is none. */
  async popItem<Item = unknown>(): Promise<Item | undefined> {
    const { popped } = await this.#client.popFromLog(this.#log);
    return popped === null ? undefined : (popped.item as Item);
  }

  async clearSession(): Promise<void> {
    await this.#client.clearLog(this.#log);
  }

  /**
   * Applies a change in one step, once for each `operationId`: the same again changes nothing.
   * @throws CairnError `conflict` if the id stands for another change, or the session does not end in the expected
   *   items; `invalid` for more than 100 items, as these cannot be appended in one step. Nothing has changed then
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

/** Sends a change once more if its reply got lost. It is named by an operation id, so it happens once. */
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

/** Divides items into requests that Cairn takes. */
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
