import type { Client, QueryMemoriesInput } from '../client/index.ts';
import { checkUser } from './check-user.ts';

/** What the adapters of agent frameworks take, whichever the framework. */
export interface TurnMemoryOptions {
  /** The client of the server, as `createClient` of `cairn-memory/client` makes it. */
  readonly client: Pick<Client, 'queryMemories' | 'addMemories'>;
  /** Most tokens of recalled memories in a prompt; 1,000 by default, and 0 recalls nothing. */
  readonly recallTokens?: number | undefined;
  /** Longest time that a model waits for a recall, in milliseconds; 5,000 by default. */
  readonly recallTimeoutMs?: number | undefined;
  /** Further fields of `POST /memory/query`, such as `filters` and `min_score`. */
  readonly query?: Omit<QueryMemoriesInput, 'query' | 'format' | 'user_id' | 'token_budget'> | undefined;
  /** Whose messages are stored after a reply: those of the `user`, which is the default, of `both` sides, or `none`. */
  readonly capture?: 'user' | 'both' | 'none' | undefined;
  /**
   * Told of each store that is under way, which nobody waits for otherwise. A platform that stops a function with its
   * reply has to be told to wait: pass `waitUntil` of Vercel or Cloudflare here. The promise never rejects.
   */
  readonly waitUntil?: ((work: Promise<void>) => void) | undefined;
  /**
   * Told of a recall or a store that failed; the agent goes on without it. By default it becomes a warning of the
   * process.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** Who speaks, and in which conversation. */
interface Speaker {
  readonly userId: string;
  readonly sessionId?: string | undefined;
}

/** What was said in one turn; texts without words are not stored. */
interface Turn extends Speaker {
  readonly asked: string;
  readonly answer: string;
}

export interface TurnMemory {
  /**
   * Recalls what belongs to a message of the user, as a text for a language model: quoted, with its sources, and marked
   * as no instructions. '' if nothing does, or if the recall failed, which `onError` is told. Never rejects.
   */
  recall(asked: string, speaker: Speaker, signal?: AbortSignal): Promise<string>;
  /** Stores a turn in the background. Returns at once and never throws. */
  capture(turn: Turn): void;
}

const DEFAULT_TOKENS = 1_000;
const DEFAULT_TIMEOUT_MS = 5_000;
/** Longest query that Cairn takes, in UTF-16 code units. */
const MAX_QUERY = 8_192;

export function createTurnMemory(options: TurnMemoryOptions): TurnMemory {
  const { client, onError = warn } = options;
  const { recallTokens = DEFAULT_TOKENS, recallTimeoutMs = DEFAULT_TIMEOUT_MS, query } = options;
  return {
    async recall(asked, { userId }, signal) {
      if (recallTokens === 0 || asked.trim() === '') return '';
      try {
        checkUser(userId);
        const fields = { ...query, user_id: userId, token_budget: recallTokens, format: 'prompt' as const };
        const input = { ...fields, query: asked.slice(0, MAX_QUERY) };
        // One attempt: the user waits for it, and the next turn recalls again.
        const { text, ids } = await client.queryMemories(input, { signal, timeoutMs: recallTimeoutMs, retries: 0 });
        return ids.length === 0 ? '' : text;
      } catch (error) {
        if (signal?.aborted !== true) onError(error);
        return '';
      }
    },
    capture(turn) {
      const items = memoriesOf(turn, options.capture ?? 'user');
      if (items.length === 0) return;
      const work = store(client, items).catch(onError);
      options.waitUntil?.(work);
    },
  };
}

/** Reasons for which a model stops in the midst of a turn, by the names of the AI SDK and Mastra. */
const UNFINISHED: readonly string[] = ['tool-calls', 'error', 'suspended', 'tripwire'];

/** Whether a reply ends its turn. After a call of tools, for one, the model is called again. */
export function endsTurn(finishReason: string): boolean {
  return !UNFINISHED.includes(finishReason);
}

interface CapturedMessage {
  readonly content: string;
  readonly type: 'user_message' | 'assistant_message';
  readonly user_id: string;
  readonly session_id?: string;
}

function memoriesOf(turn: Turn, capture: 'user' | 'both' | 'none'): CapturedMessage[] {
  const { asked, answer, userId, sessionId } = turn;
  const owner = { user_id: userId, ...(sessionId === undefined ? {} : { session_id: sessionId }) };
  const said: CapturedMessage[] = [
    { content: asked, type: 'user_message', ...owner },
    { content: answer, type: 'assistant_message', ...owner },
  ];
  const kept = { none: 0, user: 1, both: 2 }[capture];
  return said.slice(0, kept).filter(({ content }) => content.trim() !== '');
}

async function store(client: Pick<Client, 'addMemories'>, items: readonly CapturedMessage[]): Promise<void> {
  checkUser(items[0]!.user_id);
  const { results } = await client.addMemories({ items });
  const refused = results.find((result) => 'error' in result);
  if (refused !== undefined) throw new Error(`a message was not stored: ${refused.error.code}`);
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : new Error(String(error)), { code: 'CAIRN_MEMORY' });
}
