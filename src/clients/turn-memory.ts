import type { Client, QueryMemoriesInput } from '../client/index.ts';
import { checkUser } from './check-user.ts';
import { queryText } from './query-text.ts';
import { warn } from './warn.ts';

/** Options that the adapters of the AI SDK and Mastra have in common. */
export interface TurnMemoryOptions {
  /** The client of the server, as `createClient` of `cairn-memory/client` makes it. */
  readonly client: Pick<Client, 'queryMemories' | 'addMemories'>;
  /** Greatest number of tokens of recalled memories in a prompt; 1,000 by default. With 0, nothing is recalled. */
  readonly recallTokens?: number | undefined;
  /** Longest time that a call of the model waits for recalled memories (ms); 5,000 by default. */
  readonly recallTimeoutMs?: number | undefined;
  /** Further fields of `POST /memory/query`, such as `filters` and `min_score`. */
  readonly query?: Omit<QueryMemoriesInput, 'query' | 'format' | 'user_id' | 'token_budget'> | undefined;
  /** The side whose messages are stored after a reply: the `user` (the default), `both`, or `none`. */
  readonly capture?: 'user' | 'both' | 'none' | undefined;
  /**
   * Called with the promise of each store in the background, for which nothing else waits. Pass `waitUntil` of Vercel
   * or Cloudflare here, so that the platform does not stop the function before the memories are stored. The promise
   * never rejects.
   */
  readonly waitUntil?: ((work: Promise<void>) => void) | undefined;
  /**
   * Called with the error of a recall or store that failed; the agent goes on without it. It must not throw. By default
   * the error becomes a warning of the process or, in edge runtimes without a process, of the console.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** The user to whom the messages belong, and the conversation of which they are a part. */
export interface Speaker {
  readonly userId: string;
  readonly sessionId?: string | undefined;
}

/** The user and conversation of a message, or a function of the caller that returns them and may throw. */
type SpeakerOf = Speaker | (() => Speaker);

/** The user's message and the model's answer to it. A text that is empty or blank is not stored. */
interface Turn {
  readonly speaker: SpeakerOf;
  readonly asked: string;
  readonly answer: string;
}

export interface TurnMemory {
  /**
   * Recalls memories that help to answer the user's message, as a text for a language model: quoted, with their
   * sources, and marked as data, not instructions. Returns '' if there are none, if the message is blank, if
   * `recallTokens` is 0, if `signal` aborts, or if the recall fails, which alone is reported to `onError`. It never
   * rejects.
   */
  recall(asked: string, speaker: SpeakerOf, signal?: AbortSignal): Promise<string>;
  /**
   * Stores the messages of a turn in the background. Returns at once and never throws; failures are reported to
   * `onError`.
   */
  capture(turn: Turn): void;
}

const DEFAULT_TOKENS = 1_000;
const DEFAULT_TIMEOUT_MS = 5_000;

export function createTurnMemory(options: TurnMemoryOptions): TurnMemory {
  const { client, onError = warn } = options;
  const { recallTokens = DEFAULT_TOKENS, recallTimeoutMs = DEFAULT_TIMEOUT_MS, query } = options;
  return {
    async recall(asked, speaker, signal) {
      if (recallTokens === 0 || asked.trim() === '') return '';
      try {
        const { userId } = resolved(speaker);
        const fields = { ...query, user_id: userId, token_budget: recallTokens, format: 'prompt' as const };
        const input = { ...fields, query: queryText(asked) };
        // One attempt: the user waits for it, and the next turn recalls again.
        const { text, ids } = await client.queryMemories(input, { signal, timeoutMs: recallTimeoutMs, retries: 0 });
        return ids.length === 0 ? '' : text;
      } catch (error) {
        if (signal?.aborted !== true) onError(error);
        return '';
      }
    },
    capture(turn) {
      try {
        const items = memoriesOf(turn, options.capture ?? 'user');
        if (items.length === 0) return;
        const work = store(client, items).catch(onError);
        options.waitUntil?.(work);
      } catch (error) {
        onError(error);
      }
    },
  };
}

/**
 * Returns the user and the conversation, which it gets from the caller's function if `speaker` is one.
 * @throws TypeError if the user's id is not a string; whatever the caller's function throws
 */
function resolved(speaker: SpeakerOf): Speaker {
  const found = typeof speaker === 'function' ? speaker() : speaker;
  checkUser(found.userId);
  return found;
}

/**
 * Finish reasons of a model call after which the turn goes on or has failed, so that nothing is stored. They are the
 * names of the AI SDK and Mastra.
 */
const UNFINISHED: readonly string[] = ['tool-calls', 'error', 'suspended', 'tripwire'];

/**
 * Tells whether a model reply with this finish reason is the final answer to the user's message. A reply that calls
 * tools, for example, is not: the model is called again.
 */
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
  const { asked, answer } = turn;
  const texts = [asked, answer].slice(0, { none: 0, user: 1, both: 2 }[capture]);
  if (texts.every((text) => text.trim() === '')) return [];
  const { userId, sessionId } = resolved(turn.speaker);
  const owner = { user_id: userId, ...(sessionId === undefined ? {} : { session_id: sessionId }) };
  const said: CapturedMessage[] = [
    { content: asked, type: 'user_message', ...owner },
    { content: answer, type: 'assistant_message', ...owner },
  ];
  return said.slice(0, texts.length).filter(({ content }) => content.trim() !== '');
}

async function store(client: Pick<Client, 'addMemories'>, items: readonly CapturedMessage[]): Promise<void> {
  const { results } = await client.addMemories({ items });
  const refused = results.find((result) => 'error' in result);
  if (refused !== undefined) throw new Error(`a message was not stored: ${refused.error.code}`);
}
