import { BaseListChatMessageHistory } from '@langchain/core/chat_history';
import {
  type BaseMessage,
  mapChatMessagesToStoredMessages,
  mapStoredMessagesToChatMessages,
  type StoredMessage,
} from '@langchain/core/messages';
import type { CairnOptions } from '../connection.ts';
import { CairnStore } from './store.ts';

export interface CairnChatHistoryOptions extends CairnOptions {
  /** Id of the conversation; it must not be empty. */
  readonly sessionId: string;
  /** The user who owns the conversation; by default it belongs to no user. */
  readonly userId?: string | undefined;
}

/** Greatest number of messages that are read in one request, and that `clear` deletes before it reads the next ones. */
const AT_ONCE = 500;

/**
 * The messages of one conversation, kept by a Cairn server in the order in which they were added, by the clock of the
 * machine that added them. Each message is an item in the namespace `chat.<session>`, and also a memory, so that
 * queries of its user find it. The methods throw what those of `CairnStore` throw; if `addMessages` or `clear` fails, a
 * part of it may be done.
 */
export class CairnChatHistory extends BaseListChatMessageHistory {
  override lc_namespace = ['cairn-memory', 'stores', 'message'];
  readonly #store: CairnStore;
  readonly #sessionId: string;
  #namespace: Promise<string[]> | undefined;
  #added = 0;

  constructor({ sessionId, ...options }: CairnChatHistoryOptions) {
    super();
    if (sessionId === '') throw new TypeError('sessionId must not be empty');
    this.#store = new CairnStore(options);
    this.#sessionId = sessionId;
  }

  override async getMessages(): Promise<BaseMessage[]> {
    const namespace = await this.#place();
    const stored: StoredMessage[] = [];
    for (;;) {
      const items = await this.#store.search(namespace, { limit: AT_ONCE, offset: stored.length });
      stored.push(...items.map(({ value }) => value as unknown as StoredMessage));
      if (items.length < AT_ONCE) return mapStoredMessagesToChatMessages(stored);
    }
  }

  override addMessage(message: BaseMessage): Promise<void> {
    return this.addMessages([message]);
  }

  override async addMessages(messages: BaseMessage[]): Promise<void> {
    const namespace = await this.#place();
    await this.#store.batch(
      mapChatMessagesToStoredMessages(messages).map((message) => ({
        namespace,
        key: this.#nextKey(),
        value: { ...message },
        index: ['data.content', 'data.content[*].text'],
      })),
    );
  }

  override async clear(): Promise<void> {
    const place = await this.#place();
    for (;;) {
      const items = await this.#store.search(place, { limit: AT_ONCE });
      await this.#store.batch(items.map(({ namespace, key }) => ({ namespace, key, value: null })));
      if (items.length < AT_ONCE) return;
    }
  }

  #place(): Promise<string[]> {
    return (this.#namespace ??= labelOf(this.#sessionId).then((label) => ['chat', label]));
  }

  /**
   * Returns a key for the next message. Keys sort by the time of this machine's clock, and within a millisecond by the
   * order of adding to one history object. A random end keeps apart the keys of two history objects of one
   * conversation.
   */
  #nextKey(): string {
    this.#added += 1;
    const [time, order] = [String(Date.now()).padStart(15, '0'), String(this.#added).padStart(9, '0')];
    return `${time}-${order}-${crypto.randomUUID().slice(0, 8)}`;
  }
}

/** Longest label of a namespace, in characters. */
const MAX_LABEL = 128;

/**
 * Makes a label of a namespace from any text. Characters that a label must not contain are escaped as in a URL. If the
 * label would be longer than 128 characters, or the text is not well-formed Unicode, the label is `sha256=` and a hash;
 * no other label contains `=`.
 */
async function labelOf(text: string): Promise<string> {
  const plain = text.isWellFormed() ? encodeURIComponent(text).replaceAll('.', '%2E') : undefined;
  if (plain !== undefined && plain.length <= MAX_LABEL) return plain;
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(JSON.stringify(text)));
  return `sha256=${[...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
